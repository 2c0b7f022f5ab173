//! The result as text: output and value, with as little around them as possible.

use super::payload::{Payload, PayloadStatus};
use super::settings::OutputMode;
use super::toon;

pub(super) fn render(payload: &Payload, output: OutputMode) -> String {
    let compact = compact(payload);
    match output {
        OutputMode::Compact => compact,
        OutputMode::Toon => {
            let block = format!("```toon\n{}\n```", toon::encode(&payload.value()));
            if block.chars().count() < compact.chars().count() { block } else { compact }
        }
    }
}

fn compact(payload: &Payload) -> String {
    let mut parts = Vec::new();
    if payload.status != PayloadStatus::Success {
        parts.push(format!("status: {}", payload.status.name()));
        if let Some(code) = payload.exit_code {
            parts.push(format!("exit: {code}"));
        }
    }
    // Left out if the traceback ends with it.
    let error = payload.error.as_deref().unwrap_or_default();
    if !payload.stderr.trim_end().ends_with(error) {
        parts.push(format!("error: {error}"));
    }
    let (out, err) = (payload.stdout.trim_end_matches('\n'), payload.stderr.trim_end_matches('\n'));
    if !out.is_empty() {
        parts.push(out.to_owned());
    }
    if !err.is_empty() {
        parts.push(format!("stderr:\n{err}"));
    }
    match payload.result_text() {
        // An empty string is a value, but many clients take an empty block for an error.
        Some(result) if parts.is_empty() && result.is_empty() => parts.push("\"\"".to_owned()),
        Some(result) if parts.is_empty() => parts.push(result),
        Some(result) => parts.push(format!("result:\n{result}")),
        None if parts.is_empty() => parts.push("success".to_owned()),
        None => {}
    }
    parts.join("\n")
}
