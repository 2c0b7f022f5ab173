//! Progress notifications for clients that request them.

use std::time::Duration;

use codexec_gateway::CallProgress;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::Progress;
use crate::progress::UpstreamProgress;

/// Interval of the notifications that code is still running.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// Minimum interval between notifications; of the messages in between, only the last is sent.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// How much a notification without new numbers adds to the progress.
const SMALL_STEP: f64 = 1e-6;
/// Timeout, so that a client that does not read cannot delay the end of the call.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// The source of progress messages.
pub(in crate::mcp) enum ProgressSource {
    Execution(Heartbeat),
    /// Progress messages of an upstream.
    Upstream(mpsc::Receiver<CallProgress>),
}

/// Progress of an execution: reported on changes, and regularly.
pub(in crate::mcp) struct Heartbeat {
    progress: watch::Receiver<Progress>,
    begun: Instant,
    beat: Interval,
    /// No notification is sent before this.
    next: Instant,
    /// The last message of the code that was sent.
    last_message: Option<String>,
    /// The number of printed lines that were sent.
    sent_lines: u64,
    /// The last progress of upstream calls that was sent.
    last_upstream: Option<UpstreamProgress>,
    last_number: f64,
}

impl ProgressSource {
    pub(in crate::mcp) fn execution(progress: watch::Receiver<Progress>) -> ProgressSource {
        let begun = Instant::now();
        let mut beat = interval_at(begun + HEARTBEAT, HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ProgressSource::Execution(Heartbeat {
            progress,
            begun,
            beat,
            next: begun,
            last_message: None,
            sent_lines: 0,
            last_upstream: None,
            last_number: 0.0,
        })
    }

    /// Waits for the next notification. Cancel-safe.
    pub(super) async fn next(&mut self) -> CallProgress {
        match self {
            ProgressSource::Execution(heartbeat) => heartbeat.next().await,
            ProgressSource::Upstream(progress) => match progress.recv().await {
                Some(progress) => progress,
                None => std::future::pending().await,
            },
        }
    }

    /// Returns messages from just before the end.
    pub(super) fn take_last(&mut self) -> Option<CallProgress> {
        match self {
            ProgressSource::Execution(heartbeat) => heartbeat.take_last(),
            ProgressSource::Upstream(progress) => progress.try_recv().ok(),
        }
    }
}

impl Heartbeat {
    /// THREAT[ORD-5]: a message that was not sent yet is replaced by the next one.
    async fn next(&mut self) -> CallProgress {
        sleep_until(self.next).await;
        let is_over = tokio::select! {
            changed = self.progress.changed() => changed.is_err(),
            _ = self.beat.tick() => false,
        };
        if is_over {
            return std::future::pending().await;
        }
        self.take_progress()
    }

    /// Returns the last message if it was not sent yet.
    fn take_last(&mut self) -> Option<CallProgress> {
        // The sender is gone by now, so `changed` would report nothing.
        let is_new = {
            let last = self.progress.borrow();
            let has_lines = last.output.after(self.sent_lines).1.is_some();
            has_lines
                || (last.message.is_some() && last.message != self.last_message)
                || last.upstream != self.last_upstream
        };
        is_new.then(|| self.take_progress())
    }

    fn take_progress(&mut self) -> CallProgress {
        self.next = Instant::now() + MIN_INTERVAL;
        let Progress { tool_calls, message, upstream, output } =
            self.progress.borrow_and_update().clone();
        let lines;
        (self.sent_lines, lines) = output.after(self.sent_lines);
        let is_new = message != self.last_message;
        self.last_message.clone_from(&message);
        // What is new comes first; without anything new, the last message of the code stands.
        let message = match (lines, message) {
            (Some(lines), Some(message)) if is_new => Some(format!("{lines}\n{message}")),
            (Some(lines), _) => Some(lines),
            (None, message) => message,
        };
        self.last_upstream = upstream;
        let seconds = self.begun.elapsed().as_secs();
        let message = message.unwrap_or_else(|| format!("{seconds} s, {tool_calls} tool calls"));
        // MCP requires that progress increases with every notification. The numbers are those of
        // upstream calls, so everything else counts very little.
        let done = upstream.map_or(0.0, |upstream| upstream.done);
        self.last_number = done.max(self.last_number + SMALL_STEP);
        let total = upstream.and_then(|upstream| upstream.total());
        CallProgress { progress: self.last_number, total, message: Some(message) }
    }
}

/// Notifies the client, if it requested progress.
pub(super) async fn notify_progress(context: &RequestContext<RoleServer>, progress: CallProgress) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let mut params = ProgressNotificationParam::new(token, progress.progress);
    (params.total, params.message) = (progress.total, progress.message);
    // If this fails, the client only misses a progress message.
    let _ = timeout(NOTIFY_TIMEOUT, context.peer.notify_progress(params)).await;
}
