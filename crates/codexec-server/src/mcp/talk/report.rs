//! How far a call is, told to a client that asked for it.

use std::time::Duration;

use codexec_gateway::CallProgress;
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::Progress;

/// How often a client that asked for it hears that code still runs.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// A client hears no more often than this; of what is said in between, the last.
const PAUSE: Duration = Duration::from_millis(100);
/// A client that does not read must not keep the call from ending.
const TELLING: Duration = Duration::from_secs(5);

/// What is watched.
pub(in crate::mcp) enum Watched {
    Execution(Heartbeat),
    /// An upstream's own words.
    Upstream(mpsc::Receiver<CallProgress>),
}

/// Something happened, or some time went by.
pub(in crate::mcp) struct Heartbeat {
    progress: watch::Receiver<Progress>,
    begun: Instant,
    beat: Interval,
    /// Nothing is told before this.
    next: Instant,
    /// The last message of the code's own that was told.
    told: Option<String>,
    last_ms: u128,
}

impl Watched {
    pub(in crate::mcp) fn execution(progress: watch::Receiver<Progress>) -> Watched {
        let begun = Instant::now();
        let mut beat = interval_at(begun + HEARTBEAT, HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Watched::Execution(Heartbeat { progress, begun, beat, next: begun, told: None, last_ms: 0 })
    }

    /// The next thing to tell. Cancel-safe.
    pub(super) async fn next(&mut self) -> CallProgress {
        match self {
            Watched::Execution(heartbeat) => heartbeat.next().await,
            Watched::Upstream(progress) => match progress.recv().await {
                Some(progress) => progress,
                None => std::future::pending().await,
            },
        }
    }

    /// What was said just before the end.
    pub(super) fn rest(&mut self) -> Option<CallProgress> {
        match self {
            Watched::Execution(heartbeat) => heartbeat.rest(),
            Watched::Upstream(progress) => progress.try_recv().ok(),
        }
    }
}

impl Heartbeat {
    /// THREAT[ORD-5]: a message that is not told yet is replaced by the next one.
    async fn next(&mut self) -> CallProgress {
        sleep_until(self.next).await;
        let is_over = tokio::select! {
            changed = self.progress.changed() => changed.is_err(),
            _ = self.beat.tick() => false,
        };
        if is_over {
            return std::future::pending().await;
        }
        self.tell()
    }

    /// What was said since the last time, if something was.
    fn rest(&mut self) -> Option<CallProgress> {
        // Whoever said it has ended by now, so the channel itself has no more news.
        let is_new = {
            let last = self.progress.borrow();
            last.message.is_some() && last.message != self.told
        };
        is_new.then(|| self.tell())
    }

    fn tell(&mut self) -> CallProgress {
        self.next = Instant::now() + PAUSE;
        let Progress { tool_calls, message } = self.progress.borrow_and_update().clone();
        self.told.clone_from(&message);
        let elapsed_ms = self.begun.elapsed().as_millis();
        // It has to increase every time.
        self.last_ms = elapsed_ms.max(self.last_ms + 1);
        let seconds = elapsed_ms / 1000;
        let message = message.unwrap_or_else(|| format!("{seconds} s, {tool_calls} tool calls"));
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of minutes fit")]
        let progress = self.last_ms as f64;
        CallProgress { progress, total: None, message: Some(message) }
    }
}

/// Tells a client that asked for it.
pub(super) async fn tell(context: &RequestContext<RoleServer>, progress: CallProgress) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let mut params = ProgressNotificationParam::new(token, progress.progress);
    (params.total, params.message) = (progress.total, progress.message);
    // A client that does not listen misses something, no more.
    let _ = timeout(TELLING, context.peer.notify_progress(params)).await;
}
