use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use codexec_exec::{GuestStdin, QueueTicket, Usage};
use codexec_store::ExecutionStart;
use codexec_types::{
    Admitted, ExecutionId, FileChanges, GuestOutput, Language, Limit, Limits, Outcome, SessionId,
};

use crate::answers::Answers;
use crate::execution_packages::ExecutionPackages;
use crate::guest_run::{GuestRun, RunResults};
use crate::language_guess::name_other_language;
use crate::outer_execution::{OuterExecution, SessionScope};
use crate::sessions::{OpenSession, SessionLease};
use crate::{App, Client, ExecuteError, ExecutionRequest, Images, SessionError, hints};

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

impl App {
    /// Runs code and records the execution. Call it in its own task: a client that disconnects
    /// cancels by token, never by drop, so that every execution that was begun is also finished.
    #[tracing::instrument(skip_all, fields(language = %request.language))]
    pub async fn execute(
        &self,
        mut request: ExecutionRequest,
        client: &Client,
    ) -> Result<FinishedExecution, ExecuteError> {
        let _counted = self.executions.token();
        // First of all, so that a busy server refuses at once.
        let ticket = self.take_ticket_for(&request)?;
        let (session, script) = (request.session.take(), request.script.take());
        let (discovery, replayed) = (request.discovery.take(), request.replayed.take());
        let words = request.words;
        let admitted = self.admit(request, client).await?;
        // A session runs one execution at a time; waiting for it does not count as running time.
        let lease = match &session {
            Some(session) => Some(lease_session(session, client).await?),
            None => None,
        };
        let working_dir = working_dir_of(session.as_deref(), &admitted);
        let session = session.map(|session| session.id.clone());
        let id = new_id()?;
        let _guard = client.delay_end();
        let begun = Instant::now();
        // Recorded before the start, so that a crash of the server leaves a trace.
        let store = self.records.store().await?;
        let begin = ExecutionStart {
            id: &id,
            admitted: &admitted,
            started: SystemTime::now(),
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
        let nested = client.nested_in(OuterExecution::new(client, &admitted, begun, scope, shared));
        let answers = Answers::new(self, store, &id, &admitted, &nested, replayed);
        let answers = answers.with_words(words);
        let stdin = client.streams.take_stdin();
        let driven = match self.start(&admitted, (lease, ticket, stdin), &nested, &id).await {
            Ok(Some(mut guest)) => {
                packages.set_package_mounter(guest.package_mounter());
                Ok(self.run_to_end(guest, &answers, client, &id, &mut results).await)
            }
            Ok(None) => Ok(Outcome::Cancelled),
            Err(error) => Err(error),
        };
        let driven = driven.map(|outcome| name_other_language(outcome, &admitted));
        packages.remove().await;
        client.note_nested_changes(working_dir.as_deref(), &results.changes);
        let duration = begun.elapsed();
        client.spend_allowance(results.recorded_bytes(&driven));
        // An execution that cannot be recorded is an error, even if the code ran.
        store.finish(&id, results.finish(&driven, duration)).await?;
        let mut execution = results.into_execution((id, session), &admitted, driven?, duration);
        execution.working_dir = working_dir;
        execution.hint = hints::find_hint(&execution, &admitted, words);
        Ok(execution)
    }

    /// Returns a ticket for a new worker, or `None` for a session, which has its worker.
    fn take_ticket_for(
        &self,
        request: &ExecutionRequest,
    ) -> Result<Option<QueueTicket>, ExecuteError> {
        match request.session {
            Some(_) => Ok(None),
            None => Ok(Some(self.workers.take_ticket()?)),
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
        (lease, ticket, stdin): (Option<SessionLease>, Option<QueueTicket>, Option<GuestStdin>),
        nested: &Client,
        id: &ExecutionId,
    ) -> Result<Option<GuestRun>, ExecuteError> {
        match lease {
            Some(mut lease) => {
                let number = lease.number;
                lease.run.refresh_directory(self.records.artifacts_folder(id)).await;
                lease.run.send(admitted, number).map_err(|over| lease.session.ended_error(over))?;
                Ok(Some(GuestRun::Session(lease)))
            }
            None => {
                let servers = self.servers_in(admitted.reach().named_in_guest());
                let ticket = ticket.map_or_else(|| self.workers.take_ticket(), Ok)?;
                let starting = self.workers.start_with_ticket(ticket, admitted, servers, stdin);
                let run = nested.cancel.run_until_cancelled(starting).await.transpose()?;
                Ok(run.map(|run| GuestRun::NewWorker(Box::new(run))))
            }
        }
    }
}

/// Returns the user's directory that the code works in.
fn working_dir_of(session: Option<&OpenSession>, admitted: &Admitted) -> Option<PathBuf> {
    match session {
        Some(session) => session.working_dir.clone(),
        None => admitted.working_dir().map(|dir| dir.found.path.clone()),
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
