//! Describes how an execution ended.

use std::fmt::Write as _;

use codexec_types::{Crash, Limit, Limits, Outcome, Position, Thrown};

use crate::FinishedExecution;

/// Describes the outcome and what to do about it, without its code.
pub fn explain_outcome(execution: &FinishedExecution) -> String {
    let hint = execution.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    match &execution.outcome {
        Outcome::Returned(_) => "it returned".to_owned(),
        Outcome::Threw(thrown) => describe_thrown(thrown, &hint),
        Outcome::Exited { code } => format!("the program ended with exit code {code}{hint}"),
        Outcome::Stopped(Limit::Wall) => format!(
            "stopped after {} ms; do less, or ask for more with timeout_ms",
            execution.limits.wall.as_millis()
        ),
        Outcome::Stopped(limit @ Limit::Output) => {
            let text = describe_limit(*limit, execution.limits);
            format!("stopped: {text}; print less, return what matters")
        }
        Outcome::Stopped(limit) => format!("stopped: {}", describe_limit(*limit, execution.limits)),
        Outcome::Crashed(Crash::Exited) => {
            "the worker ended before the code did; nothing else was affected".to_owned()
        }
        Outcome::Crashed(Crash::Killed { signal }) => {
            let name = signal_name(*signal).map(|name| format!(" ({name})")).unwrap_or_default();
            format!("the program was killed by signal {signal}{name}")
        }
        Outcome::Crashed(Crash::BadFrame) => {
            "the worker broke the protocol and was killed".to_owned()
        }
        Outcome::Cancelled => "the execution was cancelled".to_owned(),
    }
}

/// Describes the limit that was exceeded.
pub(super) fn describe_limit(limit: Limit, limits: Limits) -> String {
    match limit {
        Limit::Wall => format!("more than {} ms", limits.wall.as_millis()),
        Limit::Cpu => format!("more than {} s of CPU time", limits.cpu.as_secs()),
        Limit::Memory => format!("more than {} MiB of memory", limits.memory_bytes >> 20),
        Limit::Processes => format!("more than {} processes and threads", limits.processes),
        Limit::OpenFiles => format!("more than {} open files", limits.open_files),
        Limit::Disk => format!(
            "more than {} MiB or {} files on disk",
            limits.disk_bytes >> 20,
            limits.disk_files
        ),
        Limit::Output => format!("more than {} bytes of output", limits.output_bytes),
        Limit::ToolCalls => format!("more than {} tool calls in one execution", limits.tool_calls),
    }
}

/// Says each position once: a stack has it already, and a stack of one frame says nothing else.
fn describe_thrown(thrown: &Thrown, hint: &str) -> String {
    let mut text = format!("{}{hint}", thrown.message);
    if let Some(frames) = python_frames(thrown) {
        let _ = write!(text, "\n{frames}");
        return text;
    }
    let stack = thrown.stack.as_deref().map_or("", str::trim_end);
    let is_one_frame = stack.starts_with("at <main> (") && !stack.contains('\n');
    let has_position = |at: Position| {
        stack.contains(&format!("line {}", at.line))
            || stack.contains(&format!("{}:{})", at.line, at.column))
    };
    if let Some(at) = thrown.at.filter(|at| is_one_frame || !has_position(*at)) {
        let _ = write!(text, "\n  at line {}, column {}", at.line, at.column);
    }
    match (stack, thrown.at) {
        ("", _) => {}
        (_, Some(_)) if is_one_frame => {}
        (stack, _) => {
            let _ = write!(text, "\n{stack}");
        }
    }
    text
}

/// Returns a Python traceback without its first line and without the message, which is its end. The
/// frames have the position.
fn python_frames(thrown: &Thrown) -> Option<&str> {
    let stack = thrown.stack.as_deref()?.trim_end();
    let frames = stack.strip_prefix("Traceback (most recent call last):\n")?;
    Some(frames.strip_suffix(thrown.message.trim_end())?.trim_end_matches('\n'))
}

/// Names the signals that usually kill programs.
fn signal_name(signal: i32) -> Option<&'static str> {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    };
    Some(name)
}
