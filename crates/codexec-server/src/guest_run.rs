//! The run of one guest: from its first event to its last, and what it leaves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codexec_exec::{PackageMounter, Run, Usage};
use codexec_store::ExecutionEnd;
use codexec_types::{
    Admitted, Ask, ExecutionId, FileChanges, GuestOutput, Limit, Outcome, RecordEnding, RunEvent,
    SessionId,
};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::answers::Answers;
use crate::running_executions::WatchedRun;
use crate::sessions::SessionLease;
use crate::{App, Client, ExecuteError, FinishedExecution, Images};

/// The results of a run, collected while it runs, so that a cancelled run has them as well.
#[derive(Default)]
pub(crate) struct RunResults {
    output: GuestOutput,
    images: Images,
    pub(crate) changes: FileChanges,
    limits_met: Vec<Limit>,
    usage: Usage,
    posture: String,
    session_ended: Option<&'static str>,
    session_replaces: Option<String>,
    discovery_notes: Vec<String>,
}

/// The run that executes the code.
pub(crate) enum GuestRun {
    NewWorker(Box<Run>),
    Session(SessionLease),
}

/// How long asks that are still open may take to end and to be recorded, after the code has ended.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(2);

impl App {
    /// Drives a guest to its end and collects its results.
    pub(crate) async fn run_to_end(
        &self,
        mut guest: GuestRun,
        answers: &Answers<'_>,
        client: &Client,
        watched: &mut WatchedRun,
        results: &mut RunResults,
    ) -> Outcome {
        results.posture = guest.run().posture().to_string();
        let closing = guest.closing();
        let outcome = self.drive(guest.run(), answers, (client, &closing), watched, results).await;
        let outcome = results.images.take_from(outcome);
        if let (GuestRun::NewWorker(_), Some(scope)) = (&guest, answers.scope()) {
            let rest = self.sessions.end_opened_by(scope).await;
            answers.client().note_nested_changes(Some(Path::new("/")), &rest);
        }
        self.collect_results(guest.run(), watched.id(), results).await;
        results.changes.nested = answers.client().take_nested_changes();
        results.discovery_notes = answers.take_discovery_notes();
        if let GuestRun::Session(lease) = guest {
            results.session_replaces = lease.replaces();
            let session = Arc::clone(&lease.session);
            results.session_ended = lease.finish(answers.take_recorded_cell(&outcome));
            if results.session_ended.is_some() {
                session.note_end_reported(client);
            }
        }
        outcome
    }

    async fn drive(
        &self,
        run: &mut Run,
        answers: &Answers<'_>,
        (client, closing): (&Client, &CancellationToken),
        watched: &mut WatchedRun,
        results: &mut RunResults,
    ) -> Outcome {
        let mut questions = client.caller.open_questions();
        let (mut asks, mut own_asks) = (FuturesUnordered::new(), FuturesUnordered::new());
        // Created once: a guest may have thousands of events.
        let broken_off = async {
            tokio::select! {
                () = answers.client().cancel.cancelled() => {}
                () = closing.cancelled() => {}
                () = client.connection.stopping().cancelled() => {}
                () = self.stopping.cancelled() => {}
            }
        };
        let mut broken_off = std::pin::pin!(broken_off);
        let outcome = loop {
            // Yields now and then, so that a guest with many events does not block the event loop.
            tokio::task::coop::consume_budget().await;
            tokio::select! {
                event = run.next() => match event {
                    RunEvent::Output { stream, text } => {
                        client.streams.send_output(stream, &text);
                        watched.tell_output(stream, &text);
                        results.output.push(stream, &text);
                        client.progress.send_modify(|progress| progress.output.push(&text));
                    }
                    RunEvent::Ask { id, ask } => {
                        if ask.is_tool_call() {
                            watched.tell_call(&ask);
                            client.progress.send_modify(|progress| progress.tool_calls += 1);
                        }
                        match matches!(ask, Ask::Own { .. }) {
                            true => own_asks.push(answers.answer(id, ask)),
                            false => asks.push(answers.answer(id, ask)),
                        }
                    }
                    RunEvent::Image(image) => {
                        watched.tell_image(&image);
                        results.images.push(image);
                    }
                    RunEvent::Progress(text) => {
                        watched.tell_progress(&text);
                        client.progress.send_modify(|progress| progress.message = Some(text));
                    }
                    RunEvent::Ended(outcome) => break outcome,
                },
                Some(answer) = asks.next() => run.answer(answer),
                Some(answer) = own_asks.next() => run.answer(answer),
                Ok(()) = questions.changed() => match *questions.borrow_and_update() {
                    0 => run.resume_clock(),
                    _ => run.pause_clock(),
                },
                Some(watcher) = watched.next_watcher() => {
                    watched.add_watcher(watcher, &results.output);
                }
                () = &mut broken_off => {
                    break stop_and_wait(run, (client, closing), watched, results).await;
                }
            }
        };
        // THREAT[ORD-3]: no pending ask can delay the end of the execution for long.
        answers.end();
        let rest = async { while asks.next().await.is_some() {} };
        let _ = tokio::time::timeout(LEFTOVERS_TIMEOUT, rest).await;
        answers.wind_up(closing, own_asks).await;
        outcome
    }

    /// Collects the results of a run that has ended.
    async fn collect_results(&self, run: &mut Run, id: &ExecutionId, results: &mut RunResults) {
        let folder = self.records.artifacts_folder(id);
        results.usage = run.usage();
        results.limits_met = run.reached_limits();
        results.changes = run.collect_changes(folder.clone()).await;
        results.images.save(folder).await;
    }
}

impl RunResults {
    /// Returns how many bytes of the guest's output and value the record holds.
    pub(crate) fn recorded_bytes(&self, driven: &Result<Outcome, ExecuteError>) -> u64 {
        let value = driven.as_ref().ok().and_then(Outcome::value).map_or(0, str::len);
        (self.output.text().len() + value) as u64
    }

    /// Returns the end of the record.
    pub(crate) fn finish<'a>(
        &'a self,
        driven: &'a Result<Outcome, ExecuteError>,
        duration: Duration,
    ) -> ExecutionEnd<'a> {
        let (ending, value) = match driven {
            Ok(outcome) => (RecordEnding::Outcome(outcome), outcome.value()),
            Err(error) => (RecordEnding::Failed { code: error.code() }, None),
        };
        ExecutionEnd {
            ending,
            output: &self.output,
            value,
            tool_calls: self.usage.tool_calls,
            duration,
            posture: &self.posture,
            peak_memory_bytes: Some(self.usage.peak_memory_bytes),
            cpu: Some(self.usage.cpu),
            changes: &self.changes,
            limits_met: &self.limits_met,
            images: self.images.count(),
        }
    }

    /// Returns the finished execution, for its client.
    pub(crate) fn into_execution(
        self,
        (id, session): (ExecutionId, Option<SessionId>),
        admitted: &Admitted,
        outcome: Outcome,
        duration: Duration,
    ) -> FinishedExecution {
        FinishedExecution {
            id,
            language: admitted.language(),
            session,
            outcome,
            limits: admitted.limits(),
            output: self.output,
            images: self.images,
            changes: self.changes,
            limits_met: self.limits_met,
            usage: self.usage,
            duration,
            session_ended: self.session_ended,
            session_replaces: self.session_replaces,
            working_dir: None,
            hint: None,
            discovery_notes: self.discovery_notes,
        }
    }
}

impl GuestRun {
    fn run(&mut self) -> &mut Run {
        match self {
            GuestRun::NewWorker(run) => run,
            GuestRun::Session(lease) => &mut lease.run,
        }
    }

    /// Returns access to the guest's files, for packages. A session has packages of its own.
    pub(crate) fn package_mounter(&mut self) -> Option<PackageMounter> {
        match self {
            GuestRun::NewWorker(run) => run.package_mounter(),
            GuestRun::Session(_) => None,
        }
    }

    /// Returns a token that is cancelled when the session of the run is closed.
    fn closing(&self) -> CancellationToken {
        match self {
            GuestRun::NewWorker(_) => CancellationToken::new(),
            GuestRun::Session(lease) => lease.session.closing().clone(),
        }
    }
}

/// Stops the guest and waits until it has ended.
async fn stop_and_wait(
    run: &mut Run,
    (client, closing): (&Client, &CancellationToken),
    watched: &mut WatchedRun,
    results: &mut RunResults,
) -> Outcome {
    match closing.is_cancelled() {
        true => run.kill(),
        false => run.cancel(),
    }
    loop {
        match run.next().await {
            RunEvent::Ended(outcome) => return outcome,
            RunEvent::Output { stream, text } => {
                client.streams.send_output(stream, &text);
                watched.tell_output(stream, &text);
                results.output.push(stream, &text);
            }
            RunEvent::Ask { .. } | RunEvent::Image(_) | RunEvent::Progress(_) => {}
        }
    }
}
