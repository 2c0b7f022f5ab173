mod cells;

use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use codexec_types::{FromGuest, Json, Language, Thrown, ThrownCode, WorkerJob, to_identifier};
use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime};

use crate::fault::{describe_thrown, take_ok};
use crate::native::{HostLink, error_json};
use crate::prelude::{Prelude, State, install};
use crate::program::{NameScope, Program, syntax_error_code};
use crate::wire::{HostGone, Wire};

/// Enough for ordinary recursion, and well below a stack of 8 MiB.
const STACK_BYTES: usize = 1 << 20;

/// Even a guest with hardly any memory must be able to report its end.
const MIN_MEMORY_BYTES: usize = 4 << 20;

/// Limit of a result as JSON.
const RESULT_BYTES: usize = 8 << 20;

/// A warm engine, without any guest code.
pub struct JsGuest {
    context: Context,
    host: Rc<HostLink>,
    prelude: Persistent<Object<'static>>,
}

/// Why the engine could not be set up. Independent of any guest.
#[derive(Debug, thiserror::Error)]
pub enum WarmError {
    #[error("the JavaScript engine does not start")]
    Engine(#[source] rquickjs::Error),
    #[error("the prelude does not run: {0}")]
    Prelude(String),
}

impl JsGuest {
    /// Loads the engine and the prelude. Fork after this.
    pub fn warm() -> Result<JsGuest, WarmError> {
        let runtime = Runtime::new().map_err(WarmError::Engine)?;
        runtime.set_max_stack_size(STACK_BYTES);
        let context = Context::full(&runtime).map_err(WarmError::Engine)?;
        let host = Rc::new(HostLink::default());
        let prelude = context.with(|ctx| match install(&ctx, &host) {
            Ok(own) => Ok(Persistent::save(&ctx, own)),
            Err(err) => Err(WarmError::Prelude(format!("{err}: {:?}", ctx.catch()))),
        })?;
        let tracked = prelude.clone();
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| {
                let noted = tracked
                    .clone()
                    .restore(&ctx)
                    .and_then(|own| Prelude::new(own).note_rejection(promise, reason, is_handled));
                take_ok(&ctx, noted);
            },
        )));
        Ok(JsGuest { context, host, prelude })
    }

    /// Reads one `ToGuest::Start`, runs it or the cells that follow it, and reports how each ended.
    /// Returns when everything is written, or the host is gone.
    pub fn run(self, socket: UnixStream) {
        let mut wire = Wire::new(socket);
        if let Ok(job) = wire.receive_job() {
            self.host.wire.replace(Some(wire));
            self.host.began.replace(Some(Instant::now()));
            // Nothing can be reported to a host that is gone.
            let _gone = if job.is_session { self.run_cells(&job) } else { self.run_job(&job) };
            self.host.wire.replace(None);
        }
        // The process exits now; freeing the heap would only cost time.
        std::mem::forget(self);
    }

    fn run_job(&self, job: &WorkerJob) -> Result<(), HostGone> {
        let program = match Program::compile(&job.code, job.language, NameScope::Own) {
            Ok(program) => program,
            Err(flaw) => return self.send(&FromGuest::Threw(flaw)),
        };
        self.limit_memory(job);
        let source = (job.code.clone(), program.source_type);
        let file = self.host.texts.borrow_mut().add(0, source, program.positions);
        let ending = self.with_run(|run| {
            if run.begin(job).and_then(|()| run.give(&job.input, &job.args)).is_err() {
                return Ok(Err(run.take_thrown()));
            }
            let main = match run.compile_main(&program.script, &file, job.language) {
                Ok(main) => main,
                Err(flaw) => return Ok(Err(flaw)),
            };
            run.host.with_wire(|wire| wire.send(&FromGuest::Compiled))?;
            run.run_to_end(main)
        })?;
        self.send(&ending.map_or_else(FromGuest::Threw, FromGuest::Returned))
    }

    fn limit_memory(&self, job: &WorkerJob) {
        let memory_bytes = usize::try_from(job.memory_bytes).unwrap_or(usize::MAX);
        // The rest is for memory outside the engine: frames, the parser, and reporting the end.
        let limit = (memory_bytes / 8 * 7).max(MIN_MEMORY_BYTES);
        self.context.runtime().set_memory_limit(limit);
    }

    fn with_run<T>(
        &self,
        act: impl FnOnce(&EngineGuest<'_, '_>) -> Result<T, HostGone>,
    ) -> Result<T, HostGone> {
        self.context.with(|ctx| {
            let own = self.prelude.clone().restore(&ctx).map_err(|_| HostGone)?;
            act(&EngineGuest { prelude: Prelude::new(own), host: &self.host, ctx })
        })
    }

    fn send(&self, frame: &FromGuest) -> Result<(), HostGone> {
        self.host.with_wire(|wire| wire.send(frame))
    }
}

/// The end of a guest: its result, or what it threw.
type GuestEnding = Result<Json, Thrown>;

/// A guest in the engine.
struct EngineGuest<'a, 'js> {
    ctx: Ctx<'js>,
    prelude: Prelude<'js>,
    host: &'a HostLink,
}

impl<'js> EngineGuest<'_, 'js> {
    fn begin(&self, job: &WorkerJob) -> rquickjs::Result<()> {
        // `tools.my_server` reaches `my-server`.
        let servers =
            job.servers.iter().map(|name| vec![name.clone(), to_identifier(name)]).collect();
        self.prelude.begin(servers, job.is_session)
    }

    fn give(&self, input: &Json, args: &[String]) -> rquickjs::Result<()> {
        self.prelude.give(self.ctx.json_parse(input.text())?, args.to_vec())
    }

    /// Compiles the guest's function without calling it.
    fn compile_main(
        &self,
        script: &str,
        file: &str,
        language: Language,
    ) -> Result<Function<'js>, Thrown> {
        let mut options = EvalOptions::default();
        options.filename = Some(file.to_owned());
        // Strict mode is for code that asks for it, as in Node's scripts.
        options.strict = false;
        self.ctx.eval_with_options(script, options).map_err(|_| {
            // Syntax that the parser accepts, but this engine does not.
            let thrown = self.take_thrown();
            match thrown.code {
                ThrownCode::RuntimeError => Thrown { code: syntax_error_code(language), ..thrown },
                _ => thrown,
            }
        })
    }

    /// Runs until there is nothing left to wait for.
    fn run_to_end(&self, main: Function<'js>) -> Result<GuestEnding, HostGone> {
        if self.prelude.start(main).is_err() {
            return Ok(Err(self.take_thrown()));
        }
        let mut settled_ms = None;
        loop {
            match self.run_step(&mut settled_ms) {
                Ok(NextStep::Wait(deadline)) => {
                    if let Some(answer) = self.host.with_wire(|wire| wire.next_answer(deadline))? {
                        self.deliver(answer.id, &answer.result);
                    }
                }
                Ok(NextStep::Settled) => return Ok(self.result()),
                // The caller reports the interrupt.
                Ok(NextStep::Interrupted) => return Ok(Err(stuck_error())),
                Ok(NextStep::Stuck) => return Ok(Err(stuck_error())),
                Err(_) => return Ok(Err(self.take_thrown())),
            }
        }
    }

    /// Runs what can run now, and returns what to do next. `settled_ms` is the time when main was
    /// first seen to have settled.
    fn run_step(&self, settled_ms: &mut Option<f64>) -> rquickjs::Result<NextStep> {
        while !self.host.is_interrupted() && self.ctx.execute_pending_job() {}
        if self.host.is_interrupted() {
            return Ok(NextStep::Interrupted);
        }
        // A shortcut for guests that only call tools, with a single call into the prelude.
        if self.prelude.awaits_only_calls()? {
            return Ok(NextStep::Wait(None));
        }
        self.prelude.report_rejections()?;
        let now_ms = self.host.now_ms();
        let has_calls = self.prelude.has_pending_calls()?;
        let mut patience_ms = f64::INFINITY;
        if self.prelude.state()? != State::Pending {
            let end_ms = *settled_ms.get_or_insert(now_ms) + DRAIN_MS;
            let has_timeouts = self.prelude.next_timeout()?.is_some_and(|due| due <= end_ms);
            if now_ms >= end_ms || !(has_calls || has_timeouts) {
                return Ok(NextStep::Settled);
            }
            patience_ms = end_ms - now_ms;
        }
        let next_ms = self.prelude.fire_timers()?;
        let waited_ms = next_ms.map(|at| (at - self.host.now_ms()).clamp(0.0, MAX_WAIT_MS));
        Ok(match waited_ms.map(|left| left.min(patience_ms)) {
            Some(left) => NextStep::Wait(Some(after_ms(left))),
            None if has_calls && patience_ms.is_finite() => {
                NextStep::Wait(Some(after_ms(patience_ms)))
            }
            None if has_calls => NextStep::Wait(None),
            None if self.ctx.execute_pending_job() => NextStep::Wait(Some(Instant::now())),
            None => NextStep::Stuck,
        })
    }

    /// Delivers an answer. If it cannot be parsed (too deep, too large), the call fails.
    fn deliver(&self, id: u32, result: &Result<Json, codexec_types::CallError>) {
        let value = match result {
            Ok(json) => self.ctx.json_parse(json.text()),
            Err(error) => self.ctx.json_parse(error_json(error)),
        };
        let delivered = match (value, result) {
            (Ok(value), Ok(_)) => self.prelude.answer(id, value),
            (Ok(details), Err(_)) => self.prelude.refuse(id, details),
            (Err(_), _) => self.prelude.fail(id, self.ctx.catch()),
        };
        take_ok(&self.ctx, delivered);
    }

    fn result(&self) -> GuestEnding {
        match self.prelude.state() {
            Ok(State::Returned) => {}
            Ok(State::Pending) => return Err(stuck_error()),
            Ok(State::Threw) | Err(_) => {
                let error = take_ok(&self.ctx, self.prelude.error());
                return Err(error.map_or_else(stuck_error, |error| self.describe_thrown(&error)));
            }
        }
        let lost = take_ok(&self.ctx, self.prelude.unawaited());
        if let Some(error) = lost.filter(|error| !error.is_undefined()) {
            return Err(self.describe_thrown(&error));
        }
        let text = match self.prelude.result() {
            Ok(text) => text.filter(|text| text.len() <= RESULT_BYTES),
            Err(_) => return Err(self.describe_unserialisable()),
        };
        let json = text.and_then(|text| Json::parse(text).ok());
        json.ok_or_else(|| serialisation_error(format!(
            "the result is more than {RESULT_BYTES} bytes as JSON; return less of it, or a summary"
        )))
    }

    fn describe_unserialisable(&self) -> Thrown {
        let error = self.ctx.catch();
        let thrown = self.describe_thrown(&error);
        if thrown.code == ThrownCode::MemoryLimit {
            return thrown;
        }
        serialisation_error(format!(
            "the result cannot be written as JSON: {}; return plain objects, arrays, strings, \
             numbers, booleans or null",
            thrown.message
        ))
    }

    fn take_thrown(&self) -> Thrown {
        let error = self.ctx.catch();
        self.describe_thrown(&error)
    }

    fn describe_thrown(&self, error: &rquickjs::Value<'js>) -> Thrown {
        describe_thrown(&self.ctx, &self.prelude, &self.host.texts.borrow(), error)
    }
}

/// Time for calls that are not awaited, after the result is known: such a call should still be
/// sent, and one that hangs must not delay the result much.
const DRAIN_MS: f64 = 1_000.0;

/// `poll` takes milliseconds as an `int`.
const MAX_WAIT_MS: f64 = 1e9;

fn after_ms(ms: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64(ms / 1e3)
}

enum NextStep {
    /// Wait for an answer, at most until then. Also used when a timer is due now: a series of
    /// timers without a pause must not block answers.
    Wait(Option<Instant>),
    Settled,
    Stuck,
    Interrupted,
}

fn stuck_error() -> Thrown {
    let message = Thrown::STUCK.to_owned();
    Thrown { code: ThrownCode::RuntimeError, message, at: None, stack: None }
}

fn serialisation_error(message: String) -> Thrown {
    Thrown { code: ThrownCode::SerializationError, message, at: None, stack: None }
}

#[cfg(test)]
mod tests;
