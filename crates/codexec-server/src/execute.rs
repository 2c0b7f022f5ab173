use std::time::{Duration, Instant, SystemTime};

use codexec_exec::{Run, Usage, Workers};
use codexec_gateway::{Caller, Gateway};
use codexec_store::{Begin, Finish};
use codexec_types::{
    Admitted, Answer, Ask, Changes, Context, Ending, Event, ExecutionId, Limit, Limits, Outcome,
    Policy, Principal, Written,
};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{ExecuteError, Images, InForce, Records, Wanted};

/// The parts of the server. One per process.
pub struct App {
    pub in_force: InForce,
    pub workers: Workers,
    pub gateway: Gateway,
    pub records: Records,
    stopping: CancellationToken,
    executions: TaskTracker,
}

/// An execution that has ended, whichever way.
#[derive(Clone, Debug)]
pub struct Execution {
    pub id: ExecutionId,
    pub outcome: Outcome,
    /// Those it was held to.
    pub limits: Limits,
    /// Everything the guest wrote, in order, both streams together.
    pub output: String,
    pub images: Images,
    /// What it did to the directory it worked in.
    pub changes: Changes,
    /// The limits that it met without being stopped by them.
    pub limits_met: Vec<Limit>,
    pub usage: Usage,
    pub duration: Duration,
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
    written: Written,
    images: Images,
    changes: Changes,
    limits_met: Vec<Limit>,
    usage: Usage,
    posture: String,
}

/// How long executions may take to end when the server stops.
const DRAIN: Duration = Duration::from_secs(10);

impl App {
    pub fn new(policy: Policy, workers: Workers, gateway: Gateway, records: Records) -> App {
        let (stopping, executions) = (CancellationToken::new(), TaskTracker::new());
        App { in_force: InForce::new(policy), workers, gateway, records, stopping, executions }
    }

    /// Ends everything: executions first, each with its record, then the upstreams.
    pub async fn shutdown(&self) {
        self.stopping.cancel();
        self.executions.close();
        if tokio::time::timeout(DRAIN, self.executions.wait()).await.is_err() {
            tracing::warn!("executions did not end in time; the next start marks them interrupted");
        }
        self.records.flush().await;
        self.gateway.shutdown().await;
    }

    /// Runs in a task of its own: a client that leaves cancels by token, never by drop,
    /// so that every execution that was begun is also finished.
    #[tracing::instrument(skip_all, fields(language = %wanted.language))]
    pub async fn execute(
        &self,
        wanted: Wanted,
        cancel: CancellationToken,
        progress: watch::Sender<Progress>,
        caller: Caller,
    ) -> Result<Execution, ExecuteError> {
        let _counted = self.executions.token();
        let policy = self.in_force.policy();
        let request = wanted.found(&policy.files).await?;
        let admitted = policy.admit(request, &self.gateway.server_names())?;
        let id = new_id()?;
        let begun = Instant::now();
        // Written before the start, so that a crash of ours leaves a trace.
        let store = self.records.store().await?;
        let begin = Begin {
            id: &id,
            admitted: &admitted,
            started: SystemTime::now(),
            session: None,
            script: None,
            context: &Context::default(),
            principal: &Principal::local(),
        };
        store.begin(begin).await?;
        let mut trace = Trace::default();
        let mut driven = self.drive(&admitted, &cancel, &progress, caller, &mut trace).await;
        if let Ok((run, _)) = &mut driven {
            self.gather(run, &id, &mut trace).await;
        }
        let driven = driven.map(|(_, outcome)| outcome);
        let duration = begun.elapsed();
        let (ending, value) = match &driven {
            Ok(outcome) => (Ending::Outcome(outcome), outcome.value()),
            Err(error) => (Ending::Failed { code: error.code() }, None),
        };
        let finish = Finish {
            ending,
            output: &trace.written,
            value,
            tool_calls: trace.usage.tool_calls,
            duration,
            posture: &trace.posture,
            peak_memory_bytes: Some(trace.usage.peak_memory_bytes),
            cpu: Some(trace.usage.cpu),
            changes: &trace.changes,
            limits_met: &trace.limits_met,
            images: trace.images.count(),
        };
        // An execution we cannot log is an error, even if the code ran.
        store.finish(&id, finish).await?;
        let (outcome, limits) = (driven?, admitted.limits());
        let Trace { written, images, changes, limits_met, usage, .. } = trace;
        let output = written.text().to_owned();
        Ok(Execution { id, outcome, limits, output, images, changes, limits_met, usage, duration })
    }

    async fn drive(
        &self,
        admitted: &Admitted,
        cancel: &CancellationToken,
        progress: &watch::Sender<Progress>,
        caller: Caller,
        trace: &mut Trace,
    ) -> Result<(Run, Outcome), ExecuteError> {
        let mut run = self.workers.start(admitted, self.visible_servers(admitted)).await?;
        trace.posture = run.posture().to_string();
        let mut questions = caller.open_questions();
        let gateway = self.gateway.on_behalf_of(caller);
        let mut asks = FuturesUnordered::new();
        loop {
            tokio::select! {
                event = run.next() => match event {
                    Event::Output { stream, text } => trace.written.push(stream, &text),
                    Event::Ask { id, ask } => {
                        if ask.is_tool_call() {
                            progress.send_modify(|progress| progress.tool_calls += 1);
                        }
                        asks.push(answer(&gateway, id, ask, admitted));
                    }
                    Event::Image(image) => trace.images.push(image),
                    Event::Progress(text) => {
                        progress.send_modify(|progress| progress.message = Some(text));
                    }
                    Event::Ended(outcome) => return Ok((run, outcome)),
                },
                Some(answer) = asks.next() => run.answer(answer),
                Ok(()) = questions.changed() => match *questions.borrow_and_update() {
                    0 => run.go_on(),
                    _ => run.wait(),
                },
                () = cancel.cancelled() => return Ok(ended(run).await),
                () = self.stopping.cancelled() => return Ok(ended(run).await),
            }
        }
    }

    /// What is left of a run that has ended.
    async fn gather(&self, run: &mut Run, id: &ExecutionId, trace: &mut Trace) {
        let folder = self.records.artifacts(id);
        trace.usage = run.usage();
        trace.limits_met = run.limits_met();
        trace.changes = run.changes(folder.clone()).await;
        trace.images.keep(folder).await;
    }

    fn visible_servers(&self, admitted: &Admitted) -> Vec<String> {
        let names = self.gateway.server_names().into_iter();
        names
            .filter(|name| admitted.tools().allows_server(name.as_str()))
            .map(|name| name.as_str().to_owned())
            .collect()
    }
}

async fn answer(gateway: &Gateway, id: u32, ask: Ask, admitted: &Admitted) -> Answer {
    Answer { id, result: gateway.answer(ask, admitted.tools(), admitted.language()).await }
}

/// Kills the guest and waits until nothing is left of it. What it asked for is dropped, and so
/// cancelled upstream, when the caller leaves its loop.
async fn ended(mut run: Run) -> (Run, Outcome) {
    run.cancel();
    loop {
        if let Event::Ended(outcome) = run.next().await {
            return (run, outcome);
        }
    }
}

fn new_id() -> Result<ExecutionId, ExecuteError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|_| ExecuteError::NoRandomness)?;
    Ok(ExecutionId::from_bits(u128::from_ne_bytes(bits)))
}
