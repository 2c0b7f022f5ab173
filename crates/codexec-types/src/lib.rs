//! The words of the project, and the rules that need nothing but words.
//!
//! Invariant: no I/O, no clock, no async runtime. Everything here is a value or a pure function.

mod artifact;
mod context;
mod event;
mod files;
mod frame;
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

pub use artifact::{Artifact, Changes, Image, ImageType};
pub use context::{Context, Principal};
pub use event::{Event, Stream};
pub use files::{DirRefusal, Files, FoundDir, WorkingDir};
pub use frame::{
    Answer, Ask, CallCode, CallError, Cell, CellEnding, FRAME_HEADER_BYTES, FrameError, FromGuest,
    Job, MAX_FRAME_BYTES, ToGuest, frame_length,
};
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
