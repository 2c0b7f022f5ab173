use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use codexec_exec::packages::Packages;
use codexec_exec::{Furnisher, Place, Run, Usage, Workers};
use codexec_gateway::Gateway;
use codexec_scripts::Library;
use codexec_store::{Begin, Finish};
use codexec_types::{
    Admitted, Ask, Changes, Ending, Event, ExecutionId, Language, Limit, Limits, Outcome, Policy,
    SessionId, ToolFilter, Written,
};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answers::Answers;
use crate::audit::Writing;
use crate::discovery::{self, Discovery, Requests};
use crate::execution_packages::ExecutionPackages;
use crate::inside::{Inside, Scope, within};
use crate::sessions::{Session, Turn};
use crate::{
    Budget, Client, ExecuteError, Images, InForce, Records, Seeds, SessionError, SessionSettings,
    Sessions, Wanted,
};

/// The parts of the server. One per process.
pub struct App {
    pub in_force: InForce,
    pub workers: Workers,
    pub gateway: Gateway,
    pub records: Arc<Records>,
    pub sessions: Sessions,
    pub scripts: Library,
    pub packages: Packages,
    pub seeds: Seeds,
    /// How much of a long text an agent sees.
    pub budget: Budget,
    /// How often clients looked for tools, where that is counted.
    pub(crate) requests: Requests,
    pub(crate) writing: Writing,
    stopping: CancellationToken,
    executions: TaskTracker,
}

/// An execution that has ended, whichever way.
#[derive(Clone, Debug)]
pub struct Execution {
    pub id: ExecutionId,
    pub language: Language,
    pub session: Option<SessionId>,
    pub outcome: Outcome,
    /// Those it was held to.
    pub limits: Limits,
    /// Everything the guest wrote, in order, both streams together.
    pub output: Written,
    pub images: Images,
    /// What it did to the directory it worked in.
    pub changes: Changes,
    /// The limits that it met without being stopped by them.
    pub limits_met: Vec<Limit>,
    pub usage: Usage,
    pub duration: Duration,
    /// Why its session ended with it, if it did.
    pub session_ended: Option<&'static str>,
}

/// How far an execution is, for whoever watches it.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub tool_calls: u32,
    /// The last thing the guest said about it.
    pub message: Option<String>,
}

/// What a drive leaves behind, also when it is broken off.
#[derive(Default)]
struct Trace {
    output: Written,
    images: Images,
    changes: Changes,
    limits_met: Vec<Limit>,
    usage: Usage,
    posture: String,
    session_ended: Option<&'static str>,
}

/// Where the code runs.
enum Guest {
    Fresh(Box<Run>),
    Kept(Turn),
}

/// How long executions may take to end when the server stops.
const DRAIN: Duration = Duration::from_secs(10);
/// How long what code has started may take to end, and to be written down, when the code has ended.
const LEFTOVERS: Duration = Duration::from_secs(2);

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
        let sessions = Sessions::new(sessions, Arc::clone(&records));
        App {
            in_force: InForce::new(policy),
            packages: Packages::new(&workers),
            workers,
            gateway,
            records,
            sessions,
            scripts,
            seeds: Seeds::default(),
            budget: Budget::DEFAULT,
            requests: Requests::default(),
            writing: Writing::default(),
            stopping,
            executions,
        }
    }

    pub fn with_seeds(mut self, seeds: Seeds) -> App {
        self.seeds = seeds;
        self
    }

    pub fn with_budget(mut self, budget: Budget) -> App {
        self.budget = budget;
        self
    }

    /// Ends all executions, each with its record; for a client that has left.
    pub(crate) fn stop_executions(&self) {
        self.stopping.cancel();
    }

    /// Ends everything: executions first, each with its record, then the sessions, then the
    /// upstreams and the workers that wait.
    pub async fn shutdown(&self) {
        self.stop_executions();
        self.executions.close();
        let ended = async {
            self.executions.wait().await;
            self.sessions.end_all("server_stopped").await;
        };
        if tokio::time::timeout(DRAIN, ended).await.is_err() {
            tracing::warn!("executions did not end in time; the next start marks them interrupted");
        }
        self.records.flush().await;
        tokio::join!(self.gateway.shutdown(), self.workers.close());
    }

    /// Runs in a task of its own: a client that leaves cancels by token, never by drop,
    /// so that every execution that was begun is also finished.
    #[tracing::instrument(skip_all, fields(language = %wanted.language))]
    pub async fn execute(
        &self,
        mut wanted: Wanted,
        client: &Client,
    ) -> Result<Execution, ExecuteError> {
        let _counted = self.executions.token();
        // Before anything is done for it: whoever is turned away is turned away at once.
        let place = match &wanted.session {
            Some(_) => None,
            None => Some(self.workers.enter()?),
        };
        let discovery = wanted.discovery.take().or_else(|| discovery::of_outer(client));
        let (session, script) = (wanted.session.take(), wanted.script.take());
        let replayed = wanted.replayed.take();
        let admitted = self.admit(wanted, discovery.as_deref(), client).await?;
        // A session does one thing at a time; the wait is nobody's running time.
        let turn = match &session {
            Some(session) => Some(turn(session, client).await?),
            None => None,
        };
        let session = session.map(|session| session.id.clone());
        let id = new_id()?;
        let _begun = client.begin();
        let begun = Instant::now();
        // Written before the start, so that a crash of ours leaves a trace.
        let store = self.records.store().await?;
        let begin = Begin {
            id: &id,
            admitted: &admitted,
            started: SystemTime::now(),
            session: session.as_ref(),
            script: script.as_ref().map(|(name, version)| (name.as_str(), *version)),
            context: &client.context,
            principal: &client.principal,
        };
        store.begin(begin).await?;
        let mut trace = Trace::default();
        let packages = self.records.packages_of(&id);
        let packages = Arc::new(ExecutionPackages::new(admitted.language(), packages));
        let scope = Scope::of(session.as_ref(), &id);
        let beside = (discovery, Arc::clone(&packages));
        let inside = client.asking_from(Inside::new(client, &admitted, begun, scope, beside));
        let answers = Answers::new(self, store, &id, &admitted, &inside, replayed);
        let driven = match self.start(&admitted, (turn, place), &inside, &id).await {
            Ok(Some(mut guest)) => {
                packages.reach(guest.furnisher());
                Ok(self.see_through(guest, &answers, client, &id, &mut trace).await)
            }
            Ok(None) => Ok(Outcome::Cancelled),
            Err(error) => Err(error),
        };
        packages.remove().await;
        let duration = begun.elapsed();
        if let Some(outer) = &client.inside {
            outer.allowance.spend(trace.kept_bytes(&driven));
        }
        // An execution we cannot log is an error, even if the code ran.
        store.finish(&id, trace.finish(&driven, duration)).await?;
        let (outcome, limits) = (driven?, admitted.limits());
        let language = admitted.language();
        let Trace { output, images, changes, limits_met, usage, session_ended, .. } = trace;
        Ok(Execution {
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

    /// Decides what of a wish is allowed.
    async fn admit(
        &self,
        mut wanted: Wanted,
        discovery: Option<&Discovery>,
        client: &Client,
    ) -> Result<Admitted, ExecuteError> {
        let policy = wanted.policy(self.in_force.policy());
        let sees_all = wanted.sees_all;
        let request = wanted.found(&policy.files).await?;
        let mut admitted = policy.admit(request, &self.gateway.server_names())?;
        if sees_all {
            admitted = admitted.seeing(policy.tools.clone());
        }
        within(discovery::narrowed(admitted, discovery), client)
    }

    /// `None` where the client did not wait for a worker.
    async fn start(
        &self,
        admitted: &Admitted,
        (turn, place): (Option<Turn>, Option<Place>),
        inside: &Client,
        id: &ExecutionId,
    ) -> Result<Option<Guest>, ExecuteError> {
        match turn {
            Some(mut turn) => {
                let number = turn.number;
                turn.run.refresh_directory(self.records.artifacts(id)).await;
                turn.run.send(admitted, number).map_err(|over| turn.session.ended(over))?;
                Ok(Some(Guest::Kept(turn)))
            }
            None => {
                let discovery = discovery::of_outer(inside);
                let shown = discovery.as_ref().map_or(admitted.tools(), |found| &found.shown);
                let servers = self.visible_servers(shown);
                let place = place.map_or_else(|| self.workers.enter(), Ok)?;
                let starting = self.workers.start_at(place, admitted, servers);
                let run = inside.cancel.run_until_cancelled(starting).await.transpose()?;
                Ok(run.map(|run| Guest::Fresh(Box::new(run))))
            }
        }
    }

    /// From its start to what is left of it.
    async fn see_through(
        &self,
        mut guest: Guest,
        answers: &Answers<'_>,
        client: &Client,
        id: &ExecutionId,
        trace: &mut Trace,
    ) -> Outcome {
        trace.posture = guest.run().posture().to_string();
        let closing = guest.closing();
        let outcome = self.drive(guest.run(), answers, client, &closing, trace).await;
        if let (Guest::Fresh(_), Some(scope)) = (&guest, answers.scope()) {
            self.sessions.end_opened_by(scope).await;
        }
        self.gather(guest.run(), id, trace).await;
        if let Guest::Kept(turn) = guest {
            trace.session_ended = turn.done(answers.recorded(&outcome));
        }
        outcome
    }

    async fn drive(
        &self,
        run: &mut Run,
        answers: &Answers<'_>,
        client: &Client,
        closing: &CancellationToken,
        trace: &mut Trace,
    ) -> Outcome {
        let mut questions = client.caller.open_questions();
        let (mut asks, mut own_asks) = (FuturesUnordered::new(), FuturesUnordered::new());
        // Made once: a guest may have thousands of events.
        let broken_off = async {
            tokio::select! {
                () = client.cancel.cancelled() => {}
                () = closing.cancelled() => {}
                () = self.stopping.cancelled() => {}
            }
        };
        let mut broken_off = std::pin::pin!(broken_off);
        let outcome = loop {
            // A guest that says a thousand things at once is not heard to the end at once.
            tokio::task::coop::consume_budget().await;
            tokio::select! {
                event = run.next() => match event {
                    Event::Output { stream, text } => trace.output.push(stream, &text),
                    Event::Ask { id, ask } => {
                        if ask.is_tool_call() {
                            client.progress.send_modify(|progress| progress.tool_calls += 1);
                        }
                        match ask {
                            Ask::Own { .. } => own_asks.push(answers.answer(id, ask)),
                            _ => asks.push(answers.answer(id, ask)),
                        }
                    }
                    Event::Image(image) => trace.images.push(image),
                    Event::Progress(text) => {
                        client.progress.send_modify(|progress| progress.message = Some(text));
                    }
                    Event::Ended(outcome) => break outcome,
                },
                Some(answer) = asks.next() => run.answer(answer),
                Some(answer) = own_asks.next() => run.answer(answer),
                Ok(()) = questions.changed() => match *questions.borrow_and_update() {
                    0 => run.go_on(),
                    _ => run.wait(),
                },
                () = &mut broken_off => break ended(run, closing, trace).await,
            }
        };
        // THREAT[ORD-3]: nothing that was asked for keeps the execution from its end.
        answers.end();
        let rest = async { while asks.next().await.is_some() {} };
        let _ = tokio::time::timeout(LEFTOVERS, rest).await;
        answers.wind_up(closing, own_asks).await;
        outcome
    }

    /// What is left of a run that has ended.
    async fn gather(&self, run: &mut Run, id: &ExecutionId, trace: &mut Trace) {
        let folder = self.records.artifacts(id);
        trace.usage = run.usage();
        trace.limits_met = run.limits_met();
        trace.changes = run.changes(folder.clone()).await;
        trace.images.keep(folder).await;
    }

    /// Whose tools this code may see.
    pub(crate) fn visible_servers(&self, shown: &ToolFilter) -> Vec<String> {
        let names = self.gateway.server_names().into_iter();
        names
            .filter(|name| shown.allows_server(name.as_str()))
            .map(|name| name.as_str().to_owned())
            .collect()
    }
}

impl Trace {
    /// What its record holds of what the guest gave.
    fn kept_bytes(&self, driven: &Result<Outcome, ExecuteError>) -> u64 {
        let value = driven.as_ref().ok().and_then(Outcome::value).map_or(0, str::len);
        (self.output.text().len() + value) as u64
    }

    fn finish<'a>(
        &'a self,
        driven: &'a Result<Outcome, ExecuteError>,
        duration: Duration,
    ) -> Finish<'a> {
        let (ending, value) = match driven {
            Ok(outcome) => (Ending::Outcome(outcome), outcome.value()),
            Err(error) => (Ending::Failed { code: error.code() }, None),
        };
        Finish {
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

impl Guest {
    fn run(&mut self) -> &mut Run {
        match self {
            Guest::Fresh(run) => run,
            Guest::Kept(turn) => &mut turn.run,
        }
    }

    /// The way to its files. A session has packages of its own.
    fn furnisher(&mut self) -> Option<Furnisher> {
        match self {
            Guest::Fresh(run) => run.furnisher(),
            Guest::Kept(_) => None,
        }
    }

    /// Called when the session that it runs in is closed.
    fn closing(&self) -> CancellationToken {
        match self {
            Guest::Fresh(_) => CancellationToken::new(),
            Guest::Kept(turn) => turn.session.closing().clone(),
        }
    }
}

/// Stops the guest and waits until it has ended.
async fn ended(run: &mut Run, closing: &CancellationToken, trace: &mut Trace) -> Outcome {
    match closing.is_cancelled() {
        true => run.kill(),
        false => run.cancel(),
    }
    loop {
        match run.next().await {
            Event::Ended(outcome) => return outcome,
            Event::Output { stream, text } => trace.output.push(stream, &text),
            Event::Ask { .. } | Event::Image(_) | Event::Progress(_) => {}
        }
    }
}

/// Code that waits for a session which waits for that code would wait for ever.
async fn turn(session: &Arc<Session>, client: &Client) -> Result<Turn, SessionError> {
    if client.inside.as_ref().is_some_and(|inside| inside.sessions.contains(&session.id)) {
        return Err(SessionError::Itself(session.id.clone()));
    }
    session.turn(&client.cancel).await
}

fn new_id() -> Result<ExecutionId, ExecuteError> {
    random_bits().map(ExecutionId::from_bits)
}

/// 128 of them.
pub(crate) fn random_bits() -> Result<u128, ExecuteError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|_| ExecuteError::NoRandomness)?;
    Ok(u128::from_ne_bytes(bits))
}
