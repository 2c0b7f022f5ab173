use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use codexec_exec::{GuestStdin, QueueTicket, Usage};
use codexec_store::ExecutionStart;
use codexec_telemetry::{Span, SpanKind};
use codexec_types::{
    Admitted, ExecutionId, FileChanges, GuestOutput, Language, Limit, Limits, Outcome, SessionId,
};
use tokio_util::sync::CancellationToken;

use crate::answers::Answers;
use crate::execution_packages::ExecutionPackages;
use crate::guest_run::{GuestRun, RunResults};
use crate::language_guess::name_other_language;
use crate::outer_execution::{OuterExecution, SessionScope};
use crate::sessions::{OpenSession, SessionLease};
use crate::{
    App, Client, ExecuteError, ExecutionRequest, Images, RunningExecution, SessionError,
    coarse_status, hints,
};

/// A finished execution.
#[derive(Clone, Debug)]
pub struct FinishedExecution {
    pub id: ExecutionId,
    pub language: Language,
    pub session: Option<SessionId>,
    pub outcome: Outcome,
    /// The limits that applied.
    pub limits: Limits,
    /// Everything that the guest wrote to both streams, in order.
    pub output: GuestOutput,
    pub images: Images,
    /// The changes in the working directory.
    pub changes: FileChanges,
    /// Limits that were reached without stopping the code.
    pub limits_met: Vec<Limit>,
    pub usage: Usage,
    pub duration: Duration,
    /// The reason why the session ended with this execution, if it did.
    pub session_ended: Option<&'static str>,
    /// Why the client's earlier session with the same name ended, if this execution opened a new
    /// one.
    pub session_replaces: Option<String>,
    /// The user's directory that the code worked in.
    pub working_dir: Option<PathBuf>,
    /// Advice about a failure that comes from the sandbox.
    pub hint: Option<String>,
    /// Notes about tools that are missing in the answers to the code's searches, a sentence each.
    pub discovery_notes: Vec<String>,
}

impl FinishedExecution {
    /// Returns the length of what the code wrote and returned.
    fn reply_bytes(&self) -> u64 {
        let value = match &self.outcome {
            Outcome::Returned(value) => value.text().len(),
            Outcome::Threw(thrown) => thrown.message.len(),
            Outcome::Exited { .. }
            | Outcome::Stopped(_)
            | Outcome::Crashed(_)
            | Outcome::Cancelled => 0,
        };
        (self.output.text().len() + value) as u64
    }
}

impl App {
    /// Runs code and records the execution. Call it in its own task: a client that disconnects
    /// cancels by token, never by drop, so that every execution that was begun is also finished.
    #[tracing::instrument(skip_all, fields(language = %request.language))]
    pub async fn execute(
        &self,
        request: ExecutionRequest,
        client: &Client,
    ) -> Result<FinishedExecution, ExecuteError> {
        let _tracked = self.executions.token();
        let mut counted = self.execution_counts.begin(request.language);
        let mut span = self.tracer.start(SpanKind::Internal, "execution", client.trace);
        span.set("codexec.language", request.language.name());
        let (execution, received_bytes) = self.execute_in(&mut span, request, client).await?;
        if let Some(code) = execution.outcome.code() {
            span.fail(code);
        }
        counted.finish(&execution.outcome, received_bytes, execution.reply_bytes());
        Ok(execution)
    }

    /// Returns the execution, and how many bytes its code got from tools.
    async fn execute_in(
        &self,
        span: &mut Span,
        mut request: ExecutionRequest,
        client: &Client,
    ) -> Result<(FinishedExecution, u64), ExecuteError> {
        // First of all, so that a busy server refuses at once.
        let place = self.take_place(&mut request, client)?;
        let script = request.script.take();
        let (discovery, replayed) = (request.discovery.take(), request.replayed.take());
        let words = request.words;
        let admitted = self.admit(request, client).await?;
        let working_dir = place.working_dir(&admitted);
        let session = place.session().map(|session| session.id.clone());
        // A session runs one execution at a time; waiting for it does not count as running time.
        let start = place.lease(client).await?;
        let id = new_id()?;
        let _guard = client.delay_end();
        let (begun, started) = (Instant::now(), SystemTime::now());
        // Recorded before the start, so that a crash of the server leaves a trace.
        let store = self.records.store().await?;
        let begin = ExecutionStart {
            id: &id,
            admitted: &admitted,
            started,
            session: session.as_ref(),
            script: script.as_ref().map(|(name, version)| (name.as_str(), *version)),
            context: &client.context,
            principal: &client.principal(),
        };
        store.begin(begin).await?;
        let mut results = RunResults::default();
        let packages = self.records.packages_folder(&id);
        let packages = Arc::new(ExecutionPackages::new(admitted.language(), packages));
        let scope = SessionScope::of(session.as_ref(), &id);
        let shared = (discovery, Arc::clone(&packages));
        let outer = OuterExecution::new(client, &admitted, begun, scope, shared);
        let nested = client.nested_in(outer, span.context());
        span.set("codexec.execution.id", id.as_str());
        let answers = Answers::new(self, store, &id, &admitted, &nested, replayed);
        let answers = answers.with_words(words);
        let about = RunningExecution {
            id: id.clone(),
            principal: client.principal(),
            language: admitted.language(),
            session: session.clone(),
            started,
        };
        let mut watched = self.running.add(about, nested.cancel.clone(), client.watcher.clone());
        let driven = match self.start(&admitted, start, (client, &nested.cancel), &id).await {
            Ok(Some(mut guest)) => {
                packages.set_package_mounter(guest.package_mounter());
                Ok(self.run_to_end(guest, &answers, client, &mut watched, &mut results).await)
            }
            Ok(None) => Ok(Outcome::Cancelled),
            Err(error) => Err(error),
        };
        let driven = driven.map(|outcome| name_other_language(outcome, &admitted));
        if let Ok(outcome) = &driven {
            watched.set_end(coarse_status(outcome));
        }
        packages.remove().await;
        client.note_nested_changes(working_dir.as_deref(), &results.changes);
        let duration = begun.elapsed();
        client.spend_allowance(results.recorded_bytes(&driven));
        // An execution that cannot be recorded is an error, even if the code ran.
        store.finish(&id, results.finish(&driven, duration)).await?;
        let received_bytes = answers.received_bytes();
        let mut execution = results.into_execution((id, session), &admitted, driven?, duration);
        execution.working_dir = working_dir;
        execution.hint = hints::find_hint(&execution, &admitted, words);
        Ok((execution, received_bytes))
    }

    /// Takes a ticket for a new worker, unless the request is for a session, which has its worker.
    fn take_place(
        &self,
        request: &mut ExecutionRequest,
        client: &Client,
    ) -> Result<GuestPlace, ExecuteError> {
        match request.session.take() {
            Some(session) => Ok(GuestPlace::Session(session)),
            None => Ok(GuestPlace::NewWorker(self.workers.take_ticket(client.identity())?)),
        }
    }

    /// Checks a request against the policy of its connection, and against the limits of the code
    /// that makes it.
    async fn admit(
        &self,
        mut request: ExecutionRequest,
        client: &Client,
    ) -> Result<Admitted, ExecuteError> {
        let policy = request.policy(client.connection.policy());
        let resolved = request.resolve(&policy.files).await?;
        let servers = self.gateway.server_names();
        let admitted = policy.admit(resolved, &servers, client.outer_limits())?;
        client.check_depth()?;
        Ok(admitted)
    }

    /// Returns `None` if the client cancelled while waiting for a worker.
    async fn start(
        &self,
        admitted: &Admitted,
        start: GuestStart,
        (client, cancel): (&Client, &CancellationToken),
        id: &ExecutionId,
    ) -> Result<Option<GuestRun>, ExecuteError> {
        match start {
            GuestStart::Session(mut lease) => {
                let number = lease.number;
                lease.run.refresh_directory(self.records.artifacts_folder(id)).await;
                if let Err(over) = lease.run.send(admitted, number) {
                    lease.session.note_end_reported(client);
                    return Err(lease.session.ended_error(over).into());
                }
                Ok(Some(GuestRun::Session(lease)))
            }
            GuestStart::NewWorker { ticket, stdin } => {
                let servers = self.servers_in(admitted.reach().named_in_guest());
                let starting = self.workers.start_with_ticket(ticket, admitted, servers, stdin);
                let run = cancel.run_until_cancelled(starting).await.transpose()?;
                Ok(run.map(|run| GuestRun::NewWorker(Box::new(run))))
            }
        }
    }
}

/// The worker that code will run in.
enum GuestPlace {
    Session(Arc<OpenSession>),
    NewWorker(QueueTicket),
}

/// The worker that code starts in now.
enum GuestStart {
    Session(SessionLease),
    NewWorker { ticket: QueueTicket, stdin: Option<GuestStdin> },
}

impl GuestPlace {
    fn session(&self) -> Option<&OpenSession> {
        match self {
            GuestPlace::Session(session) => Some(session),
            GuestPlace::NewWorker(_) => None,
        }
    }

    /// Returns the user's directory that the code works in.
    fn working_dir(&self, admitted: &Admitted) -> Option<PathBuf> {
        match self {
            GuestPlace::Session(session) => session.working_dir.clone(),
            GuestPlace::NewWorker(_) => admitted.working_dir().map(|dir| dir.found.path.clone()),
        }
    }

    /// Waits until the session is free, if the code runs in one.
    async fn lease(self, client: &Client) -> Result<GuestStart, SessionError> {
        // Taken also for a session, which has none, so that no nested execution reads it.
        let stdin = client.streams.take_stdin();
        match self {
            GuestPlace::Session(session) => {
                Ok(GuestStart::Session(lease_session(&session, client).await?))
            }
            GuestPlace::NewWorker(ticket) => Ok(GuestStart::NewWorker { ticket, stdin }),
        }
    }
}

/// Fails if the session itself is waiting for the calling code, which would be a deadlock.
async fn lease_session(
    session: &Arc<OpenSession>,
    client: &Client,
) -> Result<SessionLease, SessionError> {
    if client.outer.as_ref().is_some_and(|outer| outer.sessions.contains(&session.id)) {
        return Err(SessionError::Itself(session.id.clone()));
    }
    let lease = session.lease(&client.cancel).await;
    if let Err(SessionError::Ended { .. }) = &lease {
        session.note_end_reported(client);
    }
    lease
}

fn new_id() -> Result<ExecutionId, ExecuteError> {
    random_bits().map(ExecutionId::from_bits)
}

/// Returns 128 random bits.
pub(crate) fn random_bits() -> Result<u128, ExecuteError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|_| ExecuteError::NoRandomness)?;
    Ok(u128::from_ne_bytes(bits))
}
