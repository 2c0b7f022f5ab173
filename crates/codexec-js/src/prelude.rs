//! Our own JavaScript, evaluated once before the fork. Each file is a function of the natives and
//! of the object that all files extend.

use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Object, Result, Value};

use crate::native::{HostLink, make_natives};

/// In order of evaluation: a file may use the definitions of earlier ones.
const FILES: [(&str, &str); 14] = [
    ("primordials", include_str!("prelude/primordials.js")),
    ("inspect", include_str!("prelude/inspect.js")),
    ("console", include_str!("prelude/console.js")),
    ("timers", include_str!("prelude/timers.js")),
    ("clone", include_str!("prelude/clone.js")),
    ("text", include_str!("prelude/text.js")),
    ("url", include_str!("prelude/url.js")),
    ("tools", include_str!("prelude/tools.js")),
    ("host_functions", include_str!("prelude/host_functions.js")),
    ("emit", include_str!("prelude/emit.js")),
    ("lazy_intl", include_str!("prelude/lazy_intl.js")),
    ("hints", include_str!("prelude/hints.js")),
    ("session", include_str!("prelude/session.js")),
    ("main", include_str!("prelude/main.js")),
];

/// The prelude's functions that the worker calls.
pub(crate) struct Prelude<'js> {
    own: Object<'js>,
}

/// The state of the guest's main function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Pending,
    Returned,
    Threw,
}

/// Installs the globals and returns the object for [`Prelude`].
pub(crate) fn install<'js>(ctx: &Ctx<'js>, host: &Rc<HostLink>) -> Result<Object<'js>> {
    let natives = make_natives(ctx, host)?;
    let own = Object::new(ctx.clone())?;
    own.set("hostFunctions", ctx.json_parse(codexec_functions::GUEST_FUNCTIONS)?)?;
    for (name, source) in FILES {
        let mut options = EvalOptions::default();
        options.filename = Some(format!("codexec:{name}"));
        let file: Function = ctx.eval_with_options(source, options)?;
        let () = file.call((natives.clone(), own.clone()))?;
    }
    Ok(own)
}

impl<'js> Prelude<'js> {
    pub(crate) fn new(own: Object<'js>) -> Prelude<'js> {
        Prelude { own }
    }

    pub(crate) fn begin(&self, servers: Vec<Vec<String>>, is_session: bool) -> Result<()> {
        self.hook("begin")?.call((servers, is_session))
    }

    /// Sets the globals `input` and `args`.
    pub(crate) fn give(&self, input: Value<'js>, args: Vec<String>) -> Result<()> {
        self.hook("give")?.call((input, args))
    }

    /// Declares a cell's variables without a value: existing ones are kept, those in `anew` are
    /// reset.
    pub(crate) fn declare(&self, variables: Vec<String>, anew: Vec<String>) -> Result<()> {
        self.hook("declare")?.call((variables, anew))
    }

    /// Forgets the timers and calls of a cell that was interrupted.
    pub(crate) fn forget_cell(&self) -> Result<()> {
        self.hook("forgetCell")?.call(())
    }

    pub(crate) fn start(&self, main: Function<'js>) -> Result<()> {
        self.hook("start")?.call((main,))
    }

    pub(crate) fn state(&self) -> Result<State> {
        let state: u8 = self.hook("state")?.call(())?;
        Ok(match state {
            0 => State::Pending,
            1 => State::Returned,
            _ => State::Threw,
        })
    }

    /// Returns the error for a call that was not awaited, or undefined.
    pub(crate) fn unawaited(&self) -> Result<Value<'js>> {
        self.hook("unawaited")?.call(())
    }

    /// Returns the result as JSON; `None` if it is too long to be sent.
    pub(crate) fn result(&self) -> Result<Option<String>> {
        self.hook("result")?.call(())
    }

    pub(crate) fn error(&self) -> Result<Value<'js>> {
        self.hook("error")?.call(())
    }

    /// Returns the code of a `ToolError`, but only if the prelude created it.
    pub(crate) fn tool_code(&self, error: &Value<'js>) -> Result<Option<String>> {
        self.hook("toolCode")?.call((error.clone(),))
    }

    pub(crate) fn describe(&self, error: &Value<'js>) -> Result<String> {
        self.hook("describe")?.call((error.clone(),))
    }

    /// Returns what to write instead, for the message of an error that nothing caught.
    pub(crate) fn hint(&self, message: &str) -> Result<Option<String>> {
        self.hook("hint")?.call((message,))
    }

    pub(crate) fn answer(&self, id: u32, result: Value<'js>) -> Result<()> {
        self.hook("answer")?.call((id, result))
    }

    /// `details` are the fields of a `CallError`.
    pub(crate) fn refuse(&self, id: u32, details: Value<'js>) -> Result<()> {
        self.hook("refuse")?.call((id, details))
    }

    pub(crate) fn fail(&self, id: u32, error: Value<'js>) -> Result<()> {
        self.hook("fail")?.call((id, error))
    }

    /// True if main is pending and only calls are outstanding: no timer, no rejection to report.
    pub(crate) fn awaits_only_calls(&self) -> Result<bool> {
        self.hook("awaitsOnlyCalls")?.call(())
    }

    pub(crate) fn has_pending_calls(&self) -> Result<bool> {
        self.hook("hasPendingCalls")?.call(())
    }

    /// Fires one due timer. Returns when the next one is due, in milliseconds of the run's clock.
    pub(crate) fn fire_timers(&self) -> Result<Option<f64>> {
        self.hook("fireTimers")?.call(())
    }

    /// Returns when the next timer is due that is not an interval.
    pub(crate) fn next_timeout(&self) -> Result<Option<f64>> {
        self.hook("nextTimeout")?.call(())
    }

    pub(crate) fn note_rejection(
        &self,
        promise: Value<'js>,
        reason: Value<'js>,
        is_handled: bool,
    ) -> Result<()> {
        self.hook("noteRejection")?.call((promise, reason, is_handled))
    }

    /// Writes unhandled rejections to the guest's stderr.
    pub(crate) fn report_rejections(&self) -> Result<()> {
        self.hook("reportRejections")?.call(())
    }

    fn hook(&self, name: &str) -> Result<Function<'js>> {
        self.own.get(name)
    }
}
