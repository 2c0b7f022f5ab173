//! The defaults of settings that texts for agents name. Each is a constant, and a macro for its
//! literal, because a constant text can only be composed of literals.

use codexec_types::Limits;

/// The default timeout of an execution.
pub const WALL_MS: u64 = wall_ms!();
/// The default of the longest timeout that a request may set.
pub const MAX_WALL_MS: u64 = max_wall_ms!();
/// The default time after which an idle session ends.
pub const SESSION_IDLE_MIN: u64 = session_idle_min!();
/// The default length of lists of records.
pub const LIST_LENGTH: u64 = list_length!();

const _: () = assert!(WALL_MS as u128 == Limits::DEFAULT.wall.as_millis());

macro_rules! wall_ms {
    () => {
        30_000
    };
}

macro_rules! max_wall_ms {
    () => {
        300_000
    };
}

macro_rules! session_idle_min {
    () => {
        15
    };
}

macro_rules! list_length {
    () => {
        20
    };
}

pub(crate) use {list_length, max_wall_ms, session_idle_min, wall_ms};
