//! What an agent reads about an execution.

use std::fmt::Write as _;

use codexec_types::{Crash, Limit, Limits, Outcome, Thrown};

use crate::{Budget, ExecuteError, Execution};

/// A guest's failure comes back as a reply, so that the agent can read and repair it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub text: String,
    pub is_error: bool,
}

/// The value alone when that is all there is; what was written and the value under a heading
/// when there is both.
pub fn reply(execution: &Execution, budget: Budget) -> Reply {
    let kept = format!("the whole is the resource {}", resource_uri(execution));
    let Some(code) = execution.outcome.code() else {
        let text = whole(&execution.output, execution.outcome.value());
        return Reply { text: budget.cut(&text, &kept), is_error: false };
    };
    // The code stands first, however much there is to read.
    let problem = format!("{code}: {}", explanation(execution));
    let text = match execution.output.trim_end_matches('\n') {
        "" => budget.cut(&problem, &kept),
        output => {
            let half = budget.halved();
            format!("{}\n[output]\n{}", half.cut(&problem, &kept), half.cut(output, &kept))
        }
    };
    Reply { text, is_error: true }
}

/// All that was written, and the value if there is one.
pub(crate) fn whole(output: &str, value: Option<&str>) -> String {
    let output = output.trim_end_matches('\n');
    match (output, value) {
        ("", None | Some("null")) => "null".to_owned(),
        (output, None | Some("null")) => output.to_owned(),
        ("", Some(value)) => shown(value),
        (output, Some(value)) => format!("{output}\n[result]\n{}", shown(value)),
    }
}

/// An execution that did not take place.
pub fn failure(error: &ExecuteError) -> Reply {
    let mut text = format!("{}: {error}", error.code());
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        let _ = write!(text, ": {source}");
        cause = source.source();
    }
    Reply { text, is_error: true }
}

/// Where the whole output and value of an execution can be read.
pub(crate) fn resource_uri(execution: &Execution) -> String {
    format!("codexec://executions/{}", execution.id)
}

/// A string is shown as the text it is, anything else as JSON.
fn shown(json: &str) -> String {
    match json.starts_with('"') {
        true => serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()),
        false => json.to_owned(),
    }
}

/// What happened and what to do about it, without its code.
pub fn explanation(execution: &Execution) -> String {
    match &execution.outcome {
        Outcome::Returned(_) => "it returned".to_owned(),
        Outcome::Threw(thrown) => thrown_text(thrown),
        Outcome::Stopped(limit) => limit_text(*limit, execution.limits),
        Outcome::Crashed(Crash::Exited) => {
            "the worker ended before the code did; nothing else was affected".to_owned()
        }
        Outcome::Exited { code } => format!("the program ended with exit code {code}"),
        Outcome::Crashed(Crash::Killed { signal }) => {
            format!("the program was killed by signal {signal}")
        }
        Outcome::Crashed(Crash::BadFrame) => {
            "the worker broke the protocol and was ended".to_owned()
        }
        Outcome::Cancelled => "the execution was cancelled".to_owned(),
    }
}

fn thrown_text(thrown: &Thrown) -> String {
    let mut text = thrown.message.clone();
    if let Some(at) = thrown.at {
        let _ = write!(text, "\n  at line {}, column {}", at.line, at.column);
    }
    if let Some(stack) = &thrown.stack {
        let _ = write!(text, "\n{}", stack.trim_end());
    }
    text
}

fn limit_text(limit: Limit, limits: Limits) -> String {
    match limit {
        Limit::Wall => format!(
            "stopped after {} ms; do less, or ask for more with timeout_ms",
            limits.wall.as_millis()
        ),
        Limit::Memory => format!("stopped: more than {} MiB of memory", limits.memory_bytes >> 20),
        Limit::Cpu => format!("stopped: more than {} s of CPU time", limits.cpu.as_secs()),
        Limit::Processes => format!("more than {} processes and threads", limits.processes),
        Limit::OpenFiles => format!("more than {} open files", limits.open_files),
        Limit::Disk => format!(
            "more than {} MiB or {} files on disk",
            limits.disk_bytes >> 20,
            limits.disk_files
        ),
        Limit::Output => format!(
            "stopped: more than {} bytes of output; print less, return what matters",
            limits.output_bytes
        ),
        Limit::ToolCalls => {
            format!("stopped: more than {} tool calls in one execution", limits.tool_calls)
        }
    }
}

#[cfg(test)]
mod tests;
