//! The rows of executions as every store writes them: owned, masked and truncated.

use std::borrow::Cow;

use codexec_types::{
    Edge, ExecutionId, FileChanges, Grant, Grants, GuestOutput, Limit, Outcome, RecordEnding,
    RequestOrigin, unix_ms,
};

use crate::{
    execution::ExecutionStatus,
    mask::{mask, mask_written},
    record::{ExecutionEnd, ExecutionStart},
};

/// The limit on an error message, which the guest controls.
const MESSAGE_BYTES: usize = 16 << 10;

/// The limit on the patterns of a request. Further patterns are only counted.
const ALLOWED_BYTES: usize = 64 << 10;

/// The limit on each field of the client's context.
const CONTEXT_BYTES: usize = 256;

/// The row of a new execution; an owned [`ExecutionStart`], which can be sent to the writer's
/// thread.
pub(crate) struct ExecutionStartRow {
    pub(crate) id: ExecutionId,
    pub(crate) language: &'static str,
    pub(crate) code: String,
    pub(crate) input: String,
    pub(crate) args: Option<String>,
    pub(crate) working_dir: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) script: Option<(String, u32)>,
    pub(crate) context: Option<String>,
    pub(crate) principal: String,
    pub(crate) edge: Option<&'static str>,
    /// A JSON text.
    pub(crate) allowed_tools: String,
    pub(crate) grants: Option<String>,
    pub(crate) wall_ms: i64,
    pub(crate) started_ms: i64,
}

/// The end of an execution; an owned [`ExecutionEnd`].
#[derive(Clone, Debug)]
pub(crate) struct ExecutionEndRow {
    pub(crate) id: ExecutionId,
    pub(crate) status: ExecutionStatus,
    pub(crate) error_code: Option<&'static str>,
    pub(crate) message: Option<String>,
    pub(crate) output: String,
    pub(crate) errors: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) tool_calls: u32,
    pub(crate) duration_us: i64,
    pub(crate) posture: String,
    pub(crate) peak_memory_bytes: Option<i64>,
    pub(crate) cpu_us: Option<i64>,
    /// A JSON text.
    pub(crate) changes: Option<String>,
    pub(crate) limits_met: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) images: u32,
}

impl ExecutionStartRow {
    /// Makes the row, with its secrets; see [`ExecutionStartRow::mask`].
    pub(crate) fn new(begin: &ExecutionStart<'_>) -> ExecutionStartRow {
        let admitted = begin.admitted;
        let args = json(&admitted.args());
        let working_dir = admitted.working_dir();
        ExecutionStartRow {
            id: begin.id.clone(),
            language: admitted.language().name(),
            code: admitted.code().to_owned(),
            input: admitted.input().text().to_owned(),
            args: (!admitted.args().is_empty()).then_some(args),
            working_dir: working_dir.map(|dir| dir.found.path.display().to_string()),
            session: begin.session.map(|session| session.as_str().to_owned()),
            script: begin.script.map(|(name, version)| (name.to_owned(), version)),
            context: context_json(begin.context),
            principal: begin.principal.identity().to_string(),
            edge: begin.principal.edge().map(Edge::name),
            allowed_tools: allowed_tools_json(admitted.reach().callable().lists()),
            grants: join_grants(admitted.reach().grants()),
            wall_ms: clamp(admitted.limits().wall.as_millis()),
            started_ms: unix_ms(begin.started),
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        let args_bytes = self.args.as_ref().map_or(0, String::len);
        self.code.len() + self.input.len() + args_bytes + self.allowed_tools.len()
    }

    pub(crate) fn mask(mut self) -> ExecutionStartRow {
        for text in [&mut self.code, &mut self.input].into_iter().chain(self.args.as_mut()) {
            if let Cow::Owned(masked) = mask(text) {
                *text = masked;
            }
        }
        self
    }
}

impl ExecutionEndRow {
    /// Makes the row without output and value; see [`ExecutionEndRow::with_texts`].
    pub(crate) fn new(id: &ExecutionId, finish: &ExecutionEnd<'_>) -> ExecutionEndRow {
        let (error_code, message, exit_code) = match finish.ending {
            RecordEnding::Outcome(Outcome::Threw(thrown)) => {
                let message = truncate(&mask(&thrown.message), MESSAGE_BYTES);
                (Some(thrown.code.name()), Some(message), None)
            }
            RecordEnding::Outcome(outcome @ Outcome::Exited { code }) => {
                (outcome.code(), Some(format!("exit code {code}")), Some(*code))
            }
            RecordEnding::Outcome(outcome) => (outcome.code(), None, None),
            RecordEnding::Failed { code } => (Some(code), None, None),
        };
        let met: Vec<&str> = finish.limits_met.iter().map(|limit| Limit::code(*limit)).collect();
        ExecutionEndRow {
            id: id.clone(),
            status: ExecutionStatus::of(finish.ending),
            error_code,
            message,
            output: String::new(),
            errors: None,
            value: None,
            tool_calls: finish.tool_calls,
            duration_us: clamp(finish.duration.as_micros()),
            posture: finish.posture.to_owned(),
            peak_memory_bytes: finish.peak_memory_bytes.map(|bytes| clamp(bytes.into())),
            cpu_us: finish.cpu.map(|cpu| clamp(cpu.as_micros())),
            changes: changes_json(finish.changes),
            limits_met: (!met.is_empty()).then(|| met.join(",")),
            exit_code,
            images: finish.images,
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.output.len()
            + [&self.value, &self.changes, &self.errors].map(optional).iter().sum::<usize>()
    }

    /// Adds the output and the value, with secrets masked.
    pub(crate) fn with_texts(self, written: &GuestOutput, value: Option<&str>) -> ExecutionEndRow {
        let (output, errors) = mask_written(written);
        let errors = (!errors.is_empty()).then(|| json(&errors));
        let value = value.map(|value| mask(value).into_owned());
        ExecutionEndRow { output, errors, value, ..self }
    }

    /// Returns a copy without output, value and changes.
    pub(crate) fn without_texts(&self) -> ExecutionEndRow {
        let (output, errors, value, changes) = (String::new(), None, None, None);
        ExecutionEndRow { output, errors, value, changes, ..self.clone() }
    }
}

pub(crate) fn context_json(context: &RequestOrigin) -> Option<String> {
    let truncate = |text: &Option<String>| text.as_ref().map(|text| truncate(text, CONTEXT_BYTES));
    let truncated = RequestOrigin {
        agent_id: truncate(&context.agent_id),
        trace_id: truncate(&context.trace_id),
        chat_id: truncate(&context.chat_id),
    };
    (truncated != RequestOrigin::default()).then(|| json(&truncated))
}

/// Returns a JSON text of limited length.
fn allowed_tools_json(lists: Vec<Vec<String>>) -> String {
    let mut left = ALLOWED_BYTES;
    let truncate = |list: Vec<String>| {
        let all = list.len();
        let fits = |pattern: &String| {
            left = left.saturating_sub(pattern.len() + 4);
            left > 0
        };
        let mut list: Vec<String> = list.into_iter().take_while(fits).collect();
        if list.len() < all {
            list.push(format!("(and {} more)", all - list.len()));
        }
        list
    };
    json(&lists.into_iter().map(truncate).collect::<Vec<_>>())
}

fn join_grants(grants: Grants) -> Option<String> {
    let names: Vec<&str> = grants.iter().map(Grant::name).collect();
    (!names.is_empty()).then(|| names.join(","))
}

fn changes_json(changes: &FileChanges) -> Option<String> {
    (!changes.is_empty()).then(|| json(changes))
}

pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(crate) fn clamp(number: u128) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the beginning of a text, cut between characters.
pub(crate) fn truncate(text: &str, max_bytes: usize) -> String {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default().to_owned()
}
