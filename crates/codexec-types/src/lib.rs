//! The project's value types, and the rules that are pure functions of them.
//!
//! Invariant: no I/O, no clock, no async runtime. Everything here is a value or a pure function.

mod artifact;
mod bounds;
mod context;
mod event;
mod files;
mod frame;
mod grants;
mod guest_paths;
mod hidden;
mod id;
mod json;
mod language;
mod lenient;
mod limits;
mod line;
mod name;
mod nearest;
mod outcome;
mod package;
mod policy;
mod search;
mod time;
mod tools;
mod written;

pub use artifact::{Artifact, Changes, Image, ImageType, NotWritten};
pub use bounds::{
    ASK_HEAD_BYTES, LONG_FRAME_BYTES, MAX_ASK_BYTES, Shape, id_of_long_ask, is_ask,
    refuse_long_ask, weigh_arguments,
};
pub use context::{Context, Principal};
pub use event::{Event, Stream};
pub use files::{DirRefusal, Files, FoundDir, WorkingDir};
pub use frame::{
    Answer, Ask, CallCode, CallError, Cell, CellEnding, FRAME_HEADER_BYTES, FrameError, FromGuest,
    Job, MAX_FRAME_BYTES, ToGuest, frame_length,
};
pub use grants::{Grant, Grants};
pub use guest_paths::GuestPaths;
pub use hidden::is_hidden;
pub use id::{ExecutionId, SessionId};
pub use json::Json;
pub use language::Language;
pub use lenient::{first_field, lenient_json};
pub use limits::{Limit, Limits};
pub use line::{Line, LineBuffer};
pub use name::{InvalidServerName, ServerName, alias};
pub use nearest::nearest;
pub use outcome::{Crash, Ending, Outcome, Position, Thrown, ThrownCode};
pub use package::{InvalidPackage, PackageName};
pub use policy::{Admitted, Asked, Policy, Refusal, Request};
pub use search::{Detail, ToolKind};
pub use time::{from_unix_ms, parse_time, rfc3339, unix_ms, utc_day};
pub use tools::{Denied, InvalidPattern, ToolFilter, ToolPattern};
pub use written::Written;
