mod cells;

use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use codexec_types::{FromGuest, Job, Json, Language, Thrown, ThrownCode, alias};
use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime};

use crate::fault::{caught, thrown};
use crate::native::{Host, error_text};
use crate::prelude::{Prelude, State, install};
use crate::program::{Names, Program, flaw_code};
use crate::wire::{Gone, Wire};

/// Enough for ordinary recursion, and well below a stack of 8 MiB.
const STACK_BYTES: usize = 1 << 20;

/// Even a guest with hardly any memory must be able to report its end.
const MIN_MEMORY_BYTES: usize = 4 << 20;

/// Limit of a result as JSON.
const RESULT_BYTES: usize = 8 << 20;

/// A warm engine, without any guest code.
pub struct Guest {
    context: Context,
    host: Rc<Host>,
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

impl Guest {
    /// Loads the engine and the prelude. Fork after this.
    pub fn warm() -> Result<Guest, WarmError> {
        let runtime = Runtime::new().map_err(WarmError::Engine)?;
        runtime.set_max_stack_size(STACK_BYTES);
        let context = Context::full(&runtime).map_err(WarmError::Engine)?;
        let host = Rc::new(Host::default());
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
                caught(&ctx, noted);
            },
        )));
        Ok(Guest { context, host, prelude })
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

    fn run_job(&self, job: &Job) -> Result<(), Gone> {
        let program = match Program::compile(&job.code, job.language, Names::Own) {
            Ok(program) => program,
            Err(flaw) => return self.say(&FromGuest::Threw(flaw)),
        };
        self.limit_memory(job);
        let file = self.host.texts.borrow_mut().put(0, program.positions);
        let ending = self.inside(|run| {
            if run.begin(job).and_then(|()| run.give(&job.input, &job.args)).is_err() {
                return Ok(Err(run.take_thrown()));
            }
            let main = match run.main(&program.script, &file, job.language) {
                Ok(main) => main,
                Err(flaw) => return Ok(Err(flaw)),
            };
            run.host.with_wire(|wire| wire.send(&FromGuest::Compiled))?;
            run.to_end(main)
        })?;
        self.say(&ending.map_or_else(FromGuest::Threw, FromGuest::Returned))
    }

    fn limit_memory(&self, job: &Job) {
        let memory_bytes = usize::try_from(job.memory_bytes).unwrap_or(usize::MAX);
        // The rest is for memory outside the engine: frames, the parser, and reporting the end.
        let limit = (memory_bytes / 8 * 7).max(MIN_MEMORY_BYTES);
        self.context.runtime().set_memory_limit(limit);
    }

    fn inside<T>(&self, act: impl FnOnce(&Run<'_, '_>) -> Result<T, Gone>) -> Result<T, Gone> {
        self.context.with(|ctx| {
            let own = self.prelude.clone().restore(&ctx).map_err(|_| Gone)?;
            act(&Run { prelude: Prelude::new(own), host: &self.host, ctx })
        })
    }

    fn say(&self, frame: &FromGuest) -> Result<(), Gone> {
        self.host.with_wire(|wire| wire.send(frame))
    }
}

/// The end of a guest: its result, or what it threw.
type Ending = Result<Json, Thrown>;

/// A guest in the engine.
struct Run<'a, 'js> {
    ctx: Ctx<'js>,
    prelude: Prelude<'js>,
    host: &'a Host,
}

impl<'js> Run<'_, 'js> {
    fn begin(&self, job: &Job) -> rquickjs::Result<()> {
        // `tools.my_server` reaches `my-server`.
        let servers = job.servers.iter().map(|name| vec![name.clone(), alias(name)]).collect();
        self.prelude.begin(servers)
    }

    fn give(&self, input: &Json, args: &[String]) -> rquickjs::Result<()> {
        self.prelude.give(self.ctx.json_parse(input.text())?, args.to_vec())
    }

    /// Compiles the guest's function without calling it.
    fn main(&self, script: &str, file: &str, language: Language) -> Result<Function<'js>, Thrown> {
        let mut options = EvalOptions::default();
        options.filename = Some(file.to_owned());
        self.ctx.eval_with_options(script, options).map_err(|_| {
            // Syntax that the parser accepts, but this engine does not.
            let thrown = self.take_thrown();
            match thrown.code {
                ThrownCode::RuntimeError => Thrown { code: flaw_code(language), ..thrown },
                _ => thrown,
            }
        })
    }

    /// Runs until there is nothing left to wait for.
    fn to_end(&self, main: Function<'js>) -> Result<Ending, Gone> {
        if self.prelude.start(main).is_err() {
            return Ok(Err(self.take_thrown()));
        }
        let mut settled_ms = None;
        loop {
            match self.turn(&mut settled_ms) {
                Ok(Turn::Wait(deadline)) => {
                    if let Some(answer) = self.host.with_wire(|wire| wire.next_answer(deadline))? {
                        self.deliver(answer.id, &answer.result);
                    }
                }
                Ok(Turn::Settled) => return Ok(self.result()),
                // The caller reports the interrupt.
                Ok(Turn::Interrupted) => return Ok(Err(stuck())),
                Ok(Turn::Stuck) => return Ok(Err(stuck())),
                Err(_) => return Ok(Err(self.take_thrown())),
            }
        }
    }

    /// Runs what can run now, and returns what to do next. `settled_ms` is the time when main was
    /// first seen to have settled.
    fn turn(&self, settled_ms: &mut Option<f64>) -> rquickjs::Result<Turn> {
        while !self.host.is_interrupted() && self.ctx.execute_pending_job() {}
        if self.host.is_interrupted() {
            return Ok(Turn::Interrupted);
        }
        // A shortcut for guests that only call tools, with a single call into the prelude.
        if self.prelude.awaits_only_calls()? {
            return Ok(Turn::Wait(None));
        }
        self.prelude.report_rejections()?;
        let now_ms = self.host.now_ms();
        let has_calls = self.prelude.has_pending_calls()?;
        let mut patience_ms = f64::INFINITY;
        if self.prelude.state()? != State::Pending {
            let end_ms = *settled_ms.get_or_insert(now_ms) + DRAIN_MS;
            let has_timeouts = self.prelude.next_timeout()?.is_some_and(|due| due <= end_ms);
            if now_ms >= end_ms || !(has_calls || has_timeouts) {
                return Ok(Turn::Settled);
            }
            patience_ms = end_ms - now_ms;
        }
        let next_ms = self.prelude.fire_timers()?;
        let waited_ms = next_ms.map(|at| (at - self.host.now_ms()).clamp(0.0, MAX_WAIT_MS));
        Ok(match waited_ms.map(|left| left.min(patience_ms)) {
            Some(left) => Turn::Wait(Some(after_ms(left))),
            None if has_calls && patience_ms.is_finite() => Turn::Wait(Some(after_ms(patience_ms))),
            None if has_calls => Turn::Wait(None),
            None if self.ctx.execute_pending_job() => Turn::Wait(Some(Instant::now())),
            None => Turn::Stuck,
        })
    }

    /// Delivers an answer. If it cannot be parsed (too deep, too large), the call fails.
    fn deliver(&self, id: u32, result: &Result<Json, codexec_types::CallError>) {
        let value = match result {
            Ok(json) => self.ctx.json_parse(json.text()),
            Err(error) => self.ctx.json_parse(error_text(error)),
        };
        let delivered = match (value, result) {
            (Ok(value), Ok(_)) => self.prelude.answer(id, value),
            (Ok(details), Err(_)) => self.prelude.refuse(id, details),
            (Err(_), _) => self.prelude.fail(id, self.ctx.catch()),
        };
        caught(&self.ctx, delivered);
    }

    fn result(&self) -> Ending {
        match self.prelude.state() {
            Ok(State::Returned) => {}
            Ok(State::Pending) => return Err(stuck()),
            Ok(State::Threw) | Err(_) => {
                let error = caught(&self.ctx, self.prelude.error());
                return Err(error.map_or_else(stuck, |error| self.thrown(&error)));
            }
        }
        let text = match self.prelude.result() {
            Ok(text) => text.filter(|text| text.len() <= RESULT_BYTES),
            Err(_) => return Err(self.unserialisable()),
        };
        let json = text.and_then(|text| Json::parse(text).ok());
        json.ok_or_else(|| serialisation(format!(
            "the result is more than {RESULT_BYTES} bytes as JSON; return less of it, or a summary"
        )))
    }

    fn unserialisable(&self) -> Thrown {
        let error = self.ctx.catch();
        let thrown = self.thrown(&error);
        if thrown.code == ThrownCode::MemoryLimit {
            return thrown;
        }
        serialisation(format!(
            "the result cannot be written as JSON: {}; return plain objects, arrays, strings, \
             numbers, booleans or null",
            thrown.message
        ))
    }

    fn take_thrown(&self) -> Thrown {
        let error = self.ctx.catch();
        self.thrown(&error)
    }

    fn thrown(&self, error: &rquickjs::Value<'js>) -> Thrown {
        thrown(&self.ctx, &self.prelude, &self.host.texts.borrow(), error)
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

enum Turn {
    /// Wait for an answer, at most until then. Also used when a timer is due now: a series of
    /// timers without a pause must not block answers.
    Wait(Option<Instant>),
    Settled,
    Stuck,
    Interrupted,
}

fn stuck() -> Thrown {
    let message = Thrown::STUCK.to_owned();
    Thrown { code: ThrownCode::RuntimeError, message, at: None, stack: None }
}

fn serialisation(message: String) -> Thrown {
    Thrown { code: ThrownCode::SerializationError, message, at: None, stack: None }
}

#[cfg(test)]
mod tests;
