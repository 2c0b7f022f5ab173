//! The rows of tool calls: each has a row before it is sent, and is updated when it has ended.
//!
//! Ends wait in memory and are written together with the execution's end, before that is
//! acknowledged.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use codexec_types::ExecutionId;

use crate::{
    execution_row::{clamp, truncate},
    mask::mask,
    record::{CallEnd, CallStart},
};

/// Longer arguments are truncated.
const ARGS_BYTES: usize = 64 << 10;

/// The maximum length of a secret that the masking rules find.
const SECRET_BYTES: usize = 16 << 10;

const MESSAGE_BYTES: usize = 4 << 10;

const NAME_BYTES: usize = 256;

/// The limit on ends that wait in memory for the end of their execution.
const PENDING_BYTES: usize = 1 << 20;

/// The row of a call that is about to be sent; an owned [`CallStart`].
pub(crate) struct NewCall {
    pub(crate) execution: ExecutionId,
    pub(crate) number: u32,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) args: String,
    pub(crate) args_bytes: i64,
    pub(crate) start_us: i64,
}

/// The end of a call; an owned [`CallEnd`].
#[derive(Debug)]
pub(crate) struct FinishedCall {
    pub(crate) number: u32,
    pub(crate) error: Option<(String, String)>,
    pub(crate) duration_us: i64,
    pub(crate) result_bytes: i64,
}

/// The ends that are not written yet, by execution.
#[derive(Debug, Default)]
pub(crate) struct PendingCallEnds(Mutex<HashMap<ExecutionId, (Vec<FinishedCall>, usize)>>);

impl NewCall {
    pub(crate) fn new(execution: &ExecutionId, number: u32, call: &CallStart<'_>) -> NewCall {
        let max_bytes = call.kept_bytes.min(ARGS_BYTES);
        let masked_bytes = if max_bytes == 0 { 0 } else { max_bytes + SECRET_BYTES };
        NewCall {
            execution: execution.clone(),
            number,
            server: truncate(call.server, NAME_BYTES),
            tool: truncate(call.tool, NAME_BYTES),
            // Masks more than is stored, because a truncated secret would not be recognised. The
            // rest is not masked, because the call waits for this.
            args: truncate(&mask(&truncate(call.args, masked_bytes)), max_bytes),
            args_bytes: clamp(call.args.len() as u128),
            start_us: clamp(call.after.as_micros()),
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.args.len()
    }
}

impl FinishedCall {
    pub(crate) fn new(number: u32, end: &CallEnd<'_>) -> FinishedCall {
        let error = |(code, message): (&str, &str)| {
            (truncate(code, NAME_BYTES), truncate(&mask(message), MESSAGE_BYTES))
        };
        FinishedCall {
            number,
            error: end.error.map(error),
            duration_us: clamp(end.duration.as_micros()),
            result_bytes: clamp(end.result_bytes.into()),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let error = self.error.as_ref().map_or(0, |(code, message)| code.len() + message.len());
        size_of::<FinishedCall>() + error
    }
}

impl PendingCallEnds {
    /// Adds an end. Returns true if the execution's ends should be written now.
    pub(crate) fn push(&self, execution: &ExecutionId, end: FinishedCall) -> bool {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (ends, bytes) = pending.entry(execution.clone()).or_default();
        *bytes += end.bytes();
        ends.push(end);
        *bytes > PENDING_BYTES
    }

    pub(crate) fn take(&self, execution: &ExecutionId) -> Vec<FinishedCall> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.remove(execution).unwrap_or_default().0
    }
}
