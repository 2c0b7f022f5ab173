//! Converts a value that a guest has thrown to the error that the host gets.

use codexec_types::{Thrown, ThrownCode};
use rquickjs::{Ctx, Object, Value};

use crate::positions::{GuestTexts, Stack};
use crate::prelude::Prelude;

/// Longer messages are cut.
const MESSAGE_BYTES: usize = 16 << 10;

/// The engine's error for a call of something that is not a function.
const NOT_A_FUNCTION: &str = "TypeError: not a function";

const OUT_OF_MEMORY: &str = "the code used up its memory";

/// Describes a thrown value. Reading it runs guest code (getters, proxies), so every step may
/// throw; such a part counts as missing.
pub(crate) fn describe_thrown<'js>(
    ctx: &Ctx<'js>,
    prelude: &Prelude<'js>,
    texts: &GuestTexts,
    error: &Value<'js>,
) -> Thrown {
    let object = error.as_object();
    let maker = object.and_then(|error| class_name(ctx, error)).unwrap_or_default();
    let stack = object.and_then(|error| read_text(ctx, error, "stack"));
    let Stack { at, is_innermost, text: stack } =
        stack.map(|stack| texts.parse_stack(&stack, &maker)).unwrap_or_default();
    let stack = stack.map(cut);
    if is_out_of_memory(ctx, error) {
        let message = OUT_OF_MEMORY.to_owned();
        return Thrown { code: ThrownCode::MemoryLimit, message, at, stack };
    }
    let tool_code = take_ok(ctx, prelude.tool_code(error)).flatten();
    let tool_code = tool_code.and_then(|code| find_code(&code));
    let code = tool_code.unwrap_or(ThrownCode::RuntimeError);
    // The code already names the kind of a tool's error, so the message does not repeat it.
    let own = tool_code.and_then(|_| read_text(ctx, object?, "message"));
    let message = own
        .or_else(|| take_ok(ctx, prelude.describe(error)))
        .unwrap_or_else(|| "an error that cannot be shown was thrown".to_owned());
    let callee = at.filter(|_| is_innermost && message == NOT_A_FUNCTION);
    let callee = callee.and_then(|at| texts.explain_callee(at));
    let message = callee.map_or(message, |callee| format!("TypeError: {callee}"));
    let hint = match tool_code {
        Some(_) => None,
        None => take_ok(ctx, prelude.hint(&message)).flatten(),
    };
    let message = hint.map_or(message.clone(), |hint| format!("{message}; {hint}"));
    Thrown { code, message: cut(message), at, stack }
}

/// True for the engine's own out-of-memory error. Without memory even for an error object, the
/// engine throws null, as a guest may: only the host can tell the two apart.
fn is_out_of_memory<'js>(ctx: &Ctx<'js>, error: &Value<'js>) -> bool {
    let is_engines = |error: &Object<'js>| {
        read_text(ctx, error, "name").as_deref() == Some("InternalError")
            && read_text(ctx, error, "message").as_deref() == Some("out of memory")
    };
    error.is_error() && error.as_object().is_some_and(is_engines)
}

/// Returns the value, or `None` if it threw; clears the engine's pending exception.
pub(crate) fn take_ok<T>(ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Option<T> {
    result
        .inspect_err(|err| {
            if err.is_exception() {
                ctx.catch();
            }
        })
        .ok()
}

fn read_text<'js>(ctx: &Ctx<'js>, object: &Object<'js>, key: &str) -> Option<String> {
    let value: Value = take_ok(ctx, object.get(key))?;
    value.as_string()?.to_string().ok()
}

fn class_name<'js>(ctx: &Ctx<'js>, error: &Object<'js>) -> Option<String> {
    let class: Value = take_ok(ctx, error.get("constructor"))?;
    read_text(ctx, class.as_object()?, "name")
}

fn find_code(name: &str) -> Option<ThrownCode> {
    let codes = [
        ThrownCode::InvalidArgs,
        ThrownCode::ServerNotAllowed,
        ThrownCode::ToolNotAllowed,
        ThrownCode::ToolNotFound,
        ThrownCode::ToolQuarantined,
        ThrownCode::UpstreamError,
        ThrownCode::CircuitOpen,
        ThrownCode::ServiceUnavailable,
        ThrownCode::RateLimited,
    ];
    codes.into_iter().find(|code| code.name() == name)
}

fn cut(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    message
}
