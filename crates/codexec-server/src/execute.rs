use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use codexec_exec::packages::Packages;
use codexec_exec::{PackageMounter, QueueTicket, Run, Usage, Workers};
use codexec_gateway::Gateway;
use codexec_scripts::Library;
use codexec_store::{ExecutionEnd, ExecutionStart};
use codexec_types::{
    Admitted, Ask, ExecutionId, FileChanges, GuestOutput, Language, Limit, Limits, Outcome, Policy,
    RecordEnding, RunEvent, SessionId, ToolFilter,
};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answers::Answers;
use crate::audit::AuditWriter;
use crate::discovery::{self, DiscoveryRateLimit, DiscoveryRules};
use crate::execution_packages::ExecutionPackages;
use crate::outer_execution::{OuterExecution, SessionScope, restrict_to_outer};
use crate::sessions::{OpenSession, SessionLease};
use crate::{
    Client, ExecuteError, ExecutionRequest, Images, LiveSettings, OpenSessions, Records, Seeds,
    SessionError, SessionSettings, TextBudget,
};

/// The parts of the server. One per process.
pub struct App {
    pub live_settings: LiveSettings,
    pub workers: Workers,
    pub gateway: Gateway,
    pub records: Arc<Records>,
    pub sessions: OpenSessions,
    pub scripts: Library,
    pub packages: Packages,
    pub seeds: Seeds,
    /// How much of a long text an agent gets.
    pub budget: TextBudget,
    /// Counts each client's discovery requests, where they are rate limited.
    pub(crate) discovery_limit: DiscoveryRateLimit,
    pub(crate) audit_writer: AuditWriter,
    stopping: CancellationToken,
    executions: TaskTracker,
}

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
}

/// The progress of a running execution, for its client.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub tool_calls: u32,
    /// The guest's last progress message.
    pub message: Option<String>,
}

/// The results of a run, collected while it runs, so that a cancelled run has them as well.
#[derive(Default)]
struct RunResults {
    output: GuestOutput,
    images: Images,
    changes: FileChanges,
    limits_met: Vec<Limit>,
    usage: Usage,
    posture: String,
    session_ended: Option<&'static str>,
}

/// The run that executes the code.
enum GuestRun {
    NewWorker(Box<Run>),
    Session(SessionLease),
}

/// Timeout for executions to end when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for what code has started to end and to be recorded, after the code has ended.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(2);

impl App {
    pub fn new(
        policy: Policy,
        workers: Workers,
        gateway: Gateway,
        records: Records,
        sessions: SessionSettings,
        scripts: Library,
    ) -> App {
        let (stopping, executions) = (CancellationToken::new(), TaskTracker::new());
        let records = Arc::new(records);
        let sessions = OpenSessions::new(sessions, Arc::clone(&records));
        App {
            live_settings: LiveSettings::new(policy),
            packages: Packages::new(&workers),
            workers,
            gateway,
            records,
            sessions,
            scripts,
            seeds: Seeds::default(),
            budget: TextBudget::DEFAULT,
            discovery_limit: DiscoveryRateLimit::default(),
            audit_writer: AuditWriter::default(),
            stopping,
            executions,
        }
    }

    pub fn with_seeds(mut self, seeds: Seeds) -> App {
        self.seeds = seeds;
        self
    }

    pub fn with_budget(mut self, budget: TextBudget) -> App {
        self.budget = budget;
        self
    }

    /// Cancels all executions after the client has disconnected. Each one still gets its record.
    pub(crate) fn stop_executions(&self) {
        self.stopping.cancel();
    }

    /// Stops everything: executions first, each with its record, then sessions, then upstreams and
    /// waiting workers.
    pub async fn shutdown(&self) {
        self.stop_executions();
        self.executions.close();
        let ended = async {
            self.executions.wait().await;
            self.sessions.end_all("server_stopped").await;
        };
        if tokio::time::timeout(DRAIN_TIMEOUT, ended).await.is_err() {
            tracing::warn!(
                "executions did not end in time; the next start marks them as interrupted"
            );
        }
        self.records.flush().await;
        tokio::join!(self.gateway.shutdown(), self.workers.close());
    }

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
        let ticket = match &request.session {
            Some(_) => None,
            None => Some(self.workers.take_ticket()?),
        };
        let discovery = request.discovery.take().or_else(|| discovery::outer_discovery(client));
        let (session, script) = (request.session.take(), request.script.take());
        let replayed = request.replayed.take();
        let admitted = self.admit(request, discovery.as_deref(), client).await?;
        // A session runs one execution at a time; waiting for it does not count as running time.
        let lease = match &session {
            Some(session) => Some(lease_session(session, client).await?),
            None => None,
        };
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
            principal: &client.principal,
        };
        store.begin(begin).await?;
        let mut results = RunResults::default();
        let packages = self.records.packages_folder(&id);
        let packages = Arc::new(ExecutionPackages::new(admitted.language(), packages));
        let scope = SessionScope::of(session.as_ref(), &id);
        let shared = (discovery, Arc::clone(&packages));
        let nested = client.nested_in(OuterExecution::new(client, &admitted, begun, scope, shared));
        let answers = Answers::new(self, store, &id, &admitted, &nested, replayed);
        let driven = match self.start(&admitted, (lease, ticket), &nested, &id).await {
            Ok(Some(mut guest)) => {
                packages.set_package_mounter(guest.package_mounter());
                Ok(self.run_to_end(guest, &answers, client, &id, &mut results).await)
            }
            Ok(None) => Ok(Outcome::Cancelled),
            Err(error) => Err(error),
        };
        packages.remove().await;
        let duration = begun.elapsed();
        if let Some(outer) = &client.outer {
            outer.allowance.spend(results.recorded_bytes(&driven));
        }
        // An execution that cannot be recorded is an error, even if the code ran.
        store.finish(&id, results.finish(&driven, duration)).await?;
        let (outcome, limits) = (driven?, admitted.limits());
        let language = admitted.language();
        let RunResults { output, images, changes, limits_met, usage, session_ended, .. } = results;
        Ok(FinishedExecution {
            id,
            language,
            session,
            outcome,
            limits,
            output,
            images,
            changes,
            limits_met,
            usage,
            duration,
            session_ended,
        })
    }

    /// Checks a request against the policy.
    async fn admit(
        &self,
        mut request: ExecutionRequest,
        discovery: Option<&DiscoveryRules>,
        client: &Client,
    ) -> Result<Admitted, ExecuteError> {
        let policy = request.policy(self.live_settings.policy());
        let sees_all = request.sees_all;
        let resolved = request.resolve(&policy.files).await?;
        let mut admitted = policy.admit(resolved, &self.gateway.server_names())?;
        if sees_all {
            admitted = admitted.with_visible_tools(policy.tools.clone());
        }
        restrict_to_outer(discovery::restrict_to_visible(admitted, discovery), client)
    }

    /// Returns `None` if the client cancelled while waiting for a worker.
    async fn start(
        &self,
        admitted: &Admitted,
        (lease, ticket): (Option<SessionLease>, Option<QueueTicket>),
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
                let discovery = discovery::outer_discovery(nested);
                let visible = discovery.as_ref().map_or(admitted.tools(), |rules| &rules.visible);
                let servers = self.visible_servers(visible);
                let ticket = ticket.map_or_else(|| self.workers.take_ticket(), Ok)?;
                let starting = self.workers.start_with_ticket(ticket, admitted, servers);
                let run = nested.cancel.run_until_cancelled(starting).await.transpose()?;
                Ok(run.map(|run| GuestRun::NewWorker(Box::new(run))))
            }
        }
    }

    /// Drives a guest to its end and collects its results.
    async fn run_to_end(
        &self,
        mut guest: GuestRun,
        answers: &Answers<'_>,
        client: &Client,
        id: &ExecutionId,
        results: &mut RunResults,
    ) -> Outcome {
        results.posture = guest.run().posture().to_string();
        let closing = guest.closing();
        let outcome = self.drive(guest.run(), answers, client, &closing, results).await;
        if let (GuestRun::NewWorker(_), Some(scope)) = (&guest, answers.scope()) {
            self.sessions.end_opened_by(scope).await;
        }
        self.collect_results(guest.run(), id, results).await;
        if let GuestRun::Session(lease) = guest {
            results.session_ended = lease.finish(answers.take_recorded_cell(&outcome));
        }
        outcome
    }

    async fn drive(
        &self,
        run: &mut Run,
        answers: &Answers<'_>,
        client: &Client,
        closing: &CancellationToken,
        results: &mut RunResults,
    ) -> Outcome {
        let mut questions = client.caller.open_questions();
        let (mut asks, mut own_asks) = (FuturesUnordered::new(), FuturesUnordered::new());
        // Created once: a guest may have thousands of events.
        let broken_off = async {
            tokio::select! {
                () = client.cancel.cancelled() => {}
                () = closing.cancelled() => {}
                () = self.stopping.cancelled() => {}
            }
        };
        let mut broken_off = std::pin::pin!(broken_off);
        let outcome = loop {
            // Yields now and then, so that a guest with many events does not block the event loop.
            tokio::task::coop::consume_budget().await;
            tokio::select! {
                event = run.next() => match event {
                    RunEvent::Output { stream, text } => results.output.push(stream, &text),
                    RunEvent::Ask { id, ask } => {
                        if ask.is_tool_call() {
                            client.progress.send_modify(|progress| progress.tool_calls += 1);
                        }
                        match ask {
                            Ask::Own { .. } => own_asks.push(answers.answer(id, ask)),
                            _ => asks.push(answers.answer(id, ask)),
                        }
                    }
                    RunEvent::Image(image) => results.images.push(image),
                    RunEvent::Progress(text) => {
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
                () = &mut broken_off => break stop_and_wait(run, closing, results).await,
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

    /// Returns the names of the servers whose tools this code may see.
    pub(crate) fn visible_servers(&self, visible: &ToolFilter) -> Vec<String> {
        let names = self.gateway.server_names().into_iter();
        names
            .filter(|name| visible.allows_server(name.as_str()))
            .map(|name| name.as_str().to_owned())
            .collect()
    }
}

impl RunResults {
    /// Returns how many bytes of the guest's output and value the record holds.
    fn recorded_bytes(&self, driven: &Result<Outcome, ExecuteError>) -> u64 {
        let value = driven.as_ref().ok().and_then(Outcome::value).map_or(0, str::len);
        (self.output.text().len() + value) as u64
    }

    fn finish<'a>(
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
}

impl GuestRun {
    fn run(&mut self) -> &mut Run {
        match self {
            GuestRun::NewWorker(run) => run,
            GuestRun::Session(lease) => &mut lease.run,
        }
    }

    /// Returns access to the guest's files, for packages. A session has packages of its own.
    fn package_mounter(&mut self) -> Option<PackageMounter> {
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
    closing: &CancellationToken,
    results: &mut RunResults,
) -> Outcome {
    match closing.is_cancelled() {
        true => run.kill(),
        false => run.cancel(),
    }
    loop {
        match run.next().await {
            RunEvent::Ended(outcome) => return outcome,
            RunEvent::Output { stream, text } => results.output.push(stream, &text),
            RunEvent::Ask { .. } | RunEvent::Image(_) | RunEvent::Progress(_) => {}
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
    session.lease(&client.cancel).await
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
