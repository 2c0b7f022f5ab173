//! The run of an execution, as its watchers see it.

use std::sync::Arc;

use codexec_store::CoarseStatus;
use codexec_types::{Ask, ExecutionId, GuestOutput, Image, OutputStream};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{ExecutionEvent, RunningExecution, RunningExecutions, last_pieces};
use crate::answers::describe_call;

/// Maximum bytes of earlier output for somebody who begins to watch.
const MAX_EARLIER_BYTES: usize = 256 << 10;

/// A running execution in the table. Dropping it removes it, and ends the streams of its watchers.
pub(crate) struct WatchedRun {
    table: RunningExecutions,
    about: RunningExecution,
    ended: CoarseStatus,
    joining: mpsc::Receiver<mpsc::Sender<ExecutionEvent>>,
    watchers: Vec<Watcher>,
}

struct Watcher {
    events: mpsc::Sender<ExecutionEvent>,
    missed: u64,
}

impl WatchedRun {
    pub(super) fn new(
        table: RunningExecutions,
        about: RunningExecution,
        joining: mpsc::Receiver<mpsc::Sender<ExecutionEvent>>,
        first: Option<mpsc::Sender<ExecutionEvent>>,
    ) -> WatchedRun {
        let watchers = first.into_iter().map(Watcher::new).collect();
        let ended = CoarseStatus::Failed;
        let mut run = WatchedRun { table, about, ended, joining, watchers };
        run.tell(|run| ExecutionEvent::Started(run.clone()));
        run
    }

    pub(crate) fn id(&self) -> &ExecutionId {
        &self.about.id
    }

    /// Waits for somebody who begins to watch.
    pub(crate) async fn next_watcher(&mut self) -> Option<mpsc::Sender<ExecutionEvent>> {
        self.joining.recv().await
    }

    /// Adds a watcher, and sends what the code has printed so far.
    pub(crate) fn add_watcher(
        &mut self,
        events: mpsc::Sender<ExecutionEvent>,
        output: &GuestOutput,
    ) {
        let mut watcher = Watcher::new(events);
        let (cut_bytes, earlier) = last_pieces(output, MAX_EARLIER_BYTES);
        watcher.send(ExecutionEvent::Started(self.about.clone()));
        if cut_bytes > 0 {
            watcher.missed += 1;
        }
        if !earlier.is_empty() {
            watcher.send(ExecutionEvent::Earlier(earlier));
        }
        self.watchers.push(watcher);
    }

    pub(crate) fn tell_output(&mut self, stream: OutputStream, text: &str) {
        self.tell(|_| ExecutionEvent::Output { stream, text: text.into() });
    }

    pub(crate) fn tell_progress(&mut self, text: &str) {
        self.tell(|_| ExecutionEvent::Progress(text.into()));
    }

    pub(crate) fn tell_image(&mut self, image: &Image) {
        self.tell(|_| ExecutionEvent::Image(image.mime));
    }

    pub(crate) fn tell_call(&mut self, ask: &Ask) {
        self.tell(|_| {
            let (server, tool, _) = describe_call(ask);
            ExecutionEvent::Call { server: Arc::from(server), tool: Arc::from(tool) }
        });
    }

    /// Sets how the execution ended. Without this, it has failed.
    pub(crate) fn set_end(&mut self, ended: CoarseStatus) {
        self.ended = ended;
    }

    /// Does nothing if nobody watches.
    fn tell(&mut self, event: impl FnOnce(&RunningExecution) -> ExecutionEvent) {
        if self.watchers.is_empty() {
            return;
        }
        let event = event(&self.about);
        self.watchers.retain_mut(|watcher| watcher.send(event.clone()));
    }
}

impl Drop for WatchedRun {
    fn drop(&mut self) {
        self.table.remove(&self.about, self.ended);
    }
}

impl Watcher {
    fn new(events: mpsc::Sender<ExecutionEvent>) -> Watcher {
        Watcher { events, missed: 0 }
    }

    /// Sends the event if there is room, and before it how many were missed. Returns false if
    /// nobody receives any more.
    fn send(&mut self, event: ExecutionEvent) -> bool {
        if self.missed > 0 {
            match self.events.try_send(ExecutionEvent::Missed(self.missed)) {
                Ok(()) => self.missed = 0,
                Err(TrySendError::Full(_)) => {
                    self.missed += 1;
                    return true;
                }
                Err(TrySendError::Closed(_)) => return false,
            }
        }
        match self.events.try_send(event) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed += 1;
                true
            }
            Err(TrySendError::Closed(_)) => false,
        }
    }
}
