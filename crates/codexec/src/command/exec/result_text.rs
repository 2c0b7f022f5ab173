//! Prints how an execution ended, after its output.

use std::io::{IsTerminal as _, Write as _};

use codexec_server::{FinishedExecution, explain_outcome, render_notes, render_value};
use codexec_types::{Json, Language, Outcome, ThrownCode};
use serde_json::{Value, json};

use super::super::terminal::{Paint, paint_stderr};
use super::live_output::LiveOutput;
use super::replace_field_names;

/// Prints the value to stdout, and everything else to stderr.
pub(super) fn print(execution: &FinishedExecution, live: LiveOutput) -> anyhow::Result<()> {
    live.end_lines()?;
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    match &execution.outcome {
        Outcome::Returned(value) => print_value(execution, value, live)?,
        // The exit code says it, as for every program.
        Outcome::Exited { .. } => {}
        Outcome::Threw(_) | Outcome::Stopped(_) | Outcome::Crashed(_) | Outcome::Cancelled => {
            let code = execution.outcome.code().unwrap_or_default();
            writeln!(err, "{}: {}", paint_stderr(Paint::Bad, code), explain(execution))?;
        }
    }
    let notes = render_notes(execution);
    if !notes.is_empty() {
        writeln!(err, "{notes}")?;
    }
    for file in &execution.images.files {
        writeln!(out, "{}", file.display())?;
    }
    Ok(())
}

fn print_value(
    execution: &FinishedExecution,
    value: &Json,
    live: LiveOutput,
) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    let is_program = match execution.language {
        Language::JavaScript | Language::TypeScript => false,
        Language::Python | Language::Bash | Language::Node => true,
    };
    let has_more = live.has_stdout || execution.images.count() > 0;
    if value.text() == "null" && (is_program || has_more) {
        return Ok(());
    }
    if live.has_stdout {
        writeln!(out, "[result]")?;
    }
    let text = match out.is_terminal() {
        true => indent_json(&render_value(value.text())),
        false => render_value(value.text()),
    };
    writeln!(out, "{text}")
}

/// Explains the outcome in words of the command line.
fn explain(execution: &FinishedExecution) -> String {
    let text = explain_outcome(execution);
    let is_guests = match &execution.outcome {
        Outcome::Threw(thrown) => match thrown.code {
            ThrownCode::ServerNotAllowed | ThrownCode::ToolNotAllowed => false,
            ThrownCode::SyntaxError
            | ThrownCode::TranspileError
            | ThrownCode::RuntimeError
            | ThrownCode::MemoryLimit
            | ThrownCode::SerializationError
            | ThrownCode::InvalidArgs
            | ThrownCode::ToolNotFound
            | ThrownCode::ToolQuarantined
            | ThrownCode::UpstreamError
            | ThrownCode::CircuitOpen
            | ThrownCode::ServiceUnavailable
            | ThrownCode::RateLimited => true,
        },
        Outcome::Returned(_)
        | Outcome::Exited { .. }
        | Outcome::Stopped(_)
        | Outcome::Crashed(_)
        | Outcome::Cancelled => false,
    };
    if is_guests { text } else { replace_field_names(&text) }
}

/// Puts each element of a JSON text on its own line. Numbers and strings stay as they are; text
/// that is no JSON object or array is returned unchanged.
fn indent_json(text: &str) -> String {
    let is_json = text.starts_with(['{', '[']) && serde_json::from_str::<Value>(text).is_ok();
    if !is_json {
        return text.to_owned();
    }
    let mut indented = String::with_capacity(text.len() * 2);
    let (mut depth, mut is_string, mut is_escaped) = (0, false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_string {
            indented.push(c);
            is_string = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            continue;
        }
        match c {
            '{' | '[' if matches!(chars.peek(), Some('}' | ']')) => {
                indented.push(c);
                indented.extend(chars.next());
            }
            '{' | '[' => {
                depth += 1;
                indented.push(c);
                start_line(&mut indented, depth);
            }
            '}' | ']' => {
                depth -= 1;
                start_line(&mut indented, depth);
                indented.push(c);
            }
            ',' => {
                indented.push(c);
                start_line(&mut indented, depth);
            }
            ':' => indented.push_str(": "),
            c if c.is_whitespace() => {}
            c => {
                is_string = c == '"';
                indented.push(c);
            }
        }
    }
    indented
}

fn start_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

pub(super) fn to_json(execution: &FinishedExecution) -> Value {
    let is_fine = matches!(execution.outcome, Outcome::Returned(_));
    let (what, outcome) = match &execution.outcome {
        Outcome::Returned(json) => {
            let deep = |_| Value::String(json.text().to_owned());
            ("value", json.to_value().unwrap_or_else(deep))
        }
        Outcome::Threw(thrown) => {
            let error = json!({
                "code": thrown.code.name(),
                "message": thrown.message,
                "line": thrown.at.map(|at| at.line),
                "column": thrown.at.map(|at| at.column),
                "stack": thrown.stack,
            });
            ("error", error)
        }
        other @ (Outcome::Exited { .. }
        | Outcome::Stopped(_)
        | Outcome::Crashed(_)
        | Outcome::Cancelled) => {
            ("error", json!({"code": other.code(), "message": explain(execution)}))
        }
    };
    let (name, exit_code) = match &execution.outcome {
        Outcome::Returned(_) => ("returned", None),
        Outcome::Threw(_) => ("threw", None),
        Outcome::Exited { code } => ("exited", Some(*code)),
        Outcome::Stopped(_) => ("stopped", None),
        Outcome::Crashed(_) => ("crashed", None),
        Outcome::Cancelled => ("cancelled", None),
    };
    json!({
        "ok": is_fine,
        "outcome": name,
        "id": execution.id.as_str(),
        "output": execution.output.text(),
        what: outcome,
        "exit_code": exit_code,
        "artifacts": execution.changes,
        "images": execution.images.count(),
        "image_files": execution.images.files,
        "limits_met": execution.limits_met.iter().map(|limit| limit.code()).collect::<Vec<_>>(),
        "tool_calls": execution.usage.tool_calls,
        "duration_ms": execution.duration.as_secs_f64() * 1e3,
        "cpu_ms": execution.usage.cpu.as_secs_f64() * 1e3,
        "peak_memory_bytes": execution.usage.peak_memory_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::indent_json;

    #[test]
    fn json_is_indented_without_changing_its_values() {
        let text = r#"{"a":[1,{}],"b":"x,\\\"{y","c":12345678901234567890123,"d":[]}"#;
        let expected = "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"x,\\\\\\\"{y\",\n  \
                        \"c\": 12345678901234567890123,\n  \"d\": []\n}";
        assert_eq!(indent_json(text), expected);
        for text in ["[not json", "{a: 1}", "plain", "12"] {
            assert_eq!(indent_json(text), text);
        }
    }
}
