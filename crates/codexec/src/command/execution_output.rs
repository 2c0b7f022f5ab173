//! Prints a finished execution: stdout and stderr to their streams, then the result.

use std::io::Write as _;
use std::process::ExitCode;

use serde_json::Value;

use super::terminal::{Paint, paint_stderr};
use super::terminal_text::field;

pub(super) fn print(value: &Value) -> anyhow::Result<ExitCode> {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    write_line(&mut out, &field(value, "stdout"))?;
    write_line(&mut err, &field(value, "stderr"))?;
    let failed = field(value, "error_code");
    if !failed.is_empty() && field(value, "stderr").is_empty() {
        let hint = match failed.as_str() {
            "TIMEOUT" => ": stopped at its time limit; allow more with --timeout",
            _ => "",
        };
        writeln!(err, "{}{hint}", paint_stderr(Paint::Bad, &failed))?;
    }
    if let Some(result) = value.get("result") {
        let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
        write_line(&mut out, &text)?;
    }
    match value.get("success").and_then(Value::as_bool) {
        Some(true) => Ok(ExitCode::SUCCESS),
        Some(false) | None => Ok(ExitCode::FAILURE),
    }
}

/// Writes text so that it ends with exactly one newline.
fn write_line(to: &mut impl std::io::Write, text: &str) -> std::io::Result<()> {
    match text.strip_suffix('\n').unwrap_or(text) {
        "" if text.is_empty() => Ok(()),
        text => writeln!(to, "{text}"),
    }
}
