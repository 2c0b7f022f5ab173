//! The project's value types, and the rules that are pure functions of them.
//!
//! Invariant: no I/O, no clock, no async runtime. Everything here is a value or a pure function.

mod artifact;
mod bounds;
mod clean;
mod context;
mod event;
mod frame;
mod grants;
mod guest_output;
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
mod principal;
mod reach;
mod search;
mod time;
mod tools;
mod working_dir;

pub use artifact::{Artifact, FileChanges, Image, ImageType, NotWritten};
pub use bounds::{JsonShape, LONG_FRAME_BYTES, MAX_ASK_BYTES, estimate_arguments_size};
pub use clean::{clean_line, clean_text, cut_text};
pub use context::RequestOrigin;
pub use event::{OutputStream, RunEvent};
pub use frame::{
    Ask, AskAnswer, CallCode, CallError, Cell, CellEnding, FRAME_HEADER_BYTES, FrameError,
    FromGuest, MAX_FRAME_BYTES, ToGuest, WorkerJob, frame_length,
};
pub use grants::{Grant, Grants};
pub use guest_output::GuestOutput;
pub use guest_paths::GuestPaths;
pub use hidden::is_hidden;
pub use id::{ExecutionId, SessionId};
pub use json::Json;
pub use language::Language;
pub use lenient::{find_first_field, parse_lenient_json};
pub use limits::{Limit, Limits};
pub use line::{BufferedLine, LineBuffer};
pub use name::{InvalidServerName, ServerName, to_identifier};
pub use nearest::find_nearest_names;
pub use outcome::{Crash, Outcome, Position, RecordEnding, Thrown, ThrownCode};
pub use package::{InvalidPackage, PackageName};
pub use policy::{AdmissionRequest, Admitted, OuterLimits, Policy, PolicyRefusal, RequestedLimits};
pub use principal::{Edge, Identity, InvalidPrincipal, Principal, TokenName};
pub use reach::{Reach, ToolView};
pub use search::{ToolDetail, ToolKind};
pub use time::{format_rfc3339, format_utc_day, from_unix_ms, parse_time, unix_ms};
pub use tools::{InvalidPattern, ToolDenied, ToolFilter, ToolPattern};
pub use working_dir::{DirRefusal, ResolvedDir, WorkingDir, WorkingDirPolicy};
