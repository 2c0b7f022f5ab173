//! The result of a run in this toolset's format.

use codexec_server::own::{artifact_paths, exit_code};
use codexec_server::{
    ExecuteError, FinishedExecution, TextBudget, explain_outcome, render_failure, render_value,
    resource_uri,
};
use codexec_types::{Limit, Outcome, Thrown};
use serde_json::{Map, Value, json};

use super::arguments::RunPythonArguments;

/// Further files are in the record.
const MAX_ARTIFACTS: usize = 100;

/// The four words for how a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadStatus {
    Success,
    Error,
    Timeout,
    ValidationError,
}

/// The fields of a result. Empty ones are left out in all formats.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) status: PayloadStatus,
    pub(super) summary: String,
    pub(super) exit_code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) servers: Vec<String>,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) error: Option<String>,
    /// JSON, unless it was cut.
    pub(super) result: Option<String>,
    /// The files that are new or changed.
    artifacts: Vec<String>,
    /// The codes of the limits that the code reached without being stopped.
    limits: Vec<&'static str>,
}

impl PayloadStatus {
    pub(super) fn name(self) -> &'static str {
        match self {
            PayloadStatus::Success => "success",
            PayloadStatus::Error => "error",
            PayloadStatus::Timeout => "timeout",
            PayloadStatus::ValidationError => "validation_error",
        }
    }
}

impl Payload {
    pub(super) fn of(
        execution: &FinishedExecution,
        asked: &RunPythonArguments,
        budget: TextBudget,
    ) -> Payload {
        let mut payload = Payload {
            status: PayloadStatus::Success,
            summary: "Success".to_owned(),
            exit_code: exit_code(&execution.outcome),
            stdout: execution.output.stdout(),
            stderr: execution.output.stderr(),
            servers: asked.servers.clone(),
            timeout_seconds: None,
            error: None,
            result: execution.outcome.value().filter(|text| *text != "null").map(str::to_owned),
            artifacts: artifact_paths(execution),
            limits: execution.limits_met.iter().map(|limit| limit.code()).collect(),
        };
        match &execution.outcome {
            Outcome::Returned(_) => {}
            Outcome::Threw(thrown) => payload.set_thrown(thrown, execution.hint.as_deref()),
            Outcome::Stopped(Limit::Wall) => payload.set_timed_out(asked),
            Outcome::Exited { .. }
            | Outcome::Stopped(_)
            | Outcome::Crashed(_)
            | Outcome::Cancelled => payload.fail(PayloadStatus::Error, explain_outcome(execution)),
        }
        payload.cut(budget, &format!("the whole is the resource {}", resource_uri(execution)));
        payload
    }

    /// The arguments are invalid, so nothing was run.
    pub(super) fn invalid(why: String) -> Payload {
        Payload::not_run(PayloadStatus::ValidationError, why)
    }

    /// codexec could not run the code.
    pub(super) fn failed(error: &ExecuteError) -> Payload {
        Payload::not_run(PayloadStatus::Error, render_failure(error).text)
    }

    fn not_run(status: PayloadStatus, why: String) -> Payload {
        Payload {
            status,
            summary: why.clone(),
            exit_code: None,
            stdout: String::new(),
            stderr: String::new(),
            servers: Vec::new(),
            timeout_seconds: None,
            error: Some(why),
            result: None,
            artifacts: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Sets the error, and appends the traceback to stderr as an interpreter does.
    fn set_thrown(&mut self, thrown: &Thrown, hint: Option<&str>) {
        let mut message = thrown.message.clone();
        if let Some(hint) = hint {
            message.push_str("; ");
            message.push_str(hint);
        }
        if message.starts_with("NameError: name 'mcp_") {
            message.push_str(" (code can call the servers that are named in `servers`)");
        }
        if !self.stderr.is_empty() && !self.stderr.ends_with('\n') {
            self.stderr.push('\n');
        }
        self.stderr.push_str(thrown.stack.as_deref().unwrap_or_default());
        self.fail(PayloadStatus::Error, message);
    }

    fn set_timed_out(&mut self, asked: &RunPythonArguments) {
        let (seconds, most) = (asked.timeout.as_secs(), asked.max_timeout.as_secs());
        self.timeout_seconds = Some(seconds);
        let more = if seconds < most {
            format!("; do less, or ask for more with timeout (at most {most})")
        } else {
            "; do less".to_owned()
        };
        self.fail(PayloadStatus::Timeout, format!("stopped after {seconds} s{more}"));
    }

    fn fail(&mut self, status: PayloadStatus, why: String) {
        self.status = status;
        self.summary.clone_from(&why);
        self.error = Some(why);
    }

    /// Cuts all parts to equal shares of one budget.
    fn cut(&mut self, budget: TextBudget, whole: &str) {
        let error = self.error.as_mut().into_iter();
        let parts = [&mut self.stdout, &mut self.stderr].into_iter();
        let parts: Vec<&mut String> = parts
            .chain(error)
            .chain(self.result.as_mut())
            .filter(|part| !part.is_empty())
            .collect();
        let chars: usize = parts.iter().map(|part| part.chars().count()).sum();
        if chars <= budget.chars {
            return;
        }
        let count = parts.len().max(1);
        let share = TextBudget {
            chars: budget.chars / count,
            head: budget.head / count,
            tail: budget.tail / count,
        };
        for part in parts {
            *part = share.cut(part, whole);
        }
        if let Some(error) = &self.error {
            self.summary.clone_from(error);
        }
    }

    /// Returns the structured content.
    pub(super) fn value(&self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| {
            let is_empty = match &value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Array(items) => items.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
            };
            if !is_empty {
                fields.insert(name.to_owned(), value);
            }
        };
        let lines = |text: &str| json!(text.lines().collect::<Vec<_>>());
        put("status", self.status.name().into());
        put("summary", self.summary.clone().into());
        put("exitCode", json!(self.exit_code));
        put("stdout", lines(&self.stdout));
        put("stderr", lines(&self.stderr));
        put("servers", json!(self.servers));
        put("timeoutSeconds", json!(self.timeout_seconds));
        put("error", json!(self.error));
        put("artifacts", json!(self.artifacts.iter().take(MAX_ARTIFACTS).collect::<Vec<_>>()));
        put("limits", json!(self.limits));
        if let Some(result) = &self.result {
            let text = || Value::String(result.clone());
            fields.insert(
                "result".to_owned(),
                serde_json::from_str(result).unwrap_or_else(|_| text()),
            );
        }
        Value::Object(fields)
    }

    /// Returns the value as text.
    pub(super) fn result_text(&self) -> Option<String> {
        self.result.as_deref().map(render_value)
    }
}
