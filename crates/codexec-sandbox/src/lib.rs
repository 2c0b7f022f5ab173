//! Start one child so that it can do only what its launch plan says.
//!
//! Four kinds of process, each the parent of the next:
//! - the *host* is the server; it never forks, it only asks;
//! - the *zygote* is one small single-threaded process per engine, with the engine loaded;
//! - a *keeper* is a fork of the zygote that sits in one slot's cgroups, empty network namespace
//!   and empty root, so that none of this costs anything when a guest starts;
//! - a *worker* is a fork of a keeper in namespaces of its own. It serves one guest and dies.
//!
//! Programs (Python, Bash, Node) need files and processes. Their zygote builds a room, a minimal
//! read-only root in a process namespace of its own, before it forks keepers, and their worker's
//! first process is ours (init).
//!
//! Invariant: a worker that says it is confined has every layer of its plan in force, except
//! those that the plan lets go by name. Nothing is lowered silently.

mod ask;
mod attach;
mod broker;
mod cgroup;
mod control;
mod entry;
mod exchange;
mod exec;
mod heard;
mod host;
mod hull;
mod init;
mod keeper;
mod launch;
mod layer;
mod mounter;
mod overlay;
mod probe;
mod ruleset;
mod seccomp;
mod sys;
mod tree;
mod worker;
mod zygote;

pub use ask::ask_program;
pub use broker::open_line;
pub use cgroup::{Cgroups, Group, MemoryGauge, NoCgroups};
pub use control::{
    Command, Exit, First, FromInit, FromKeeper, NAMESPACES, Overlay, OverlayRenewal,
    OverlayRequest, PROXY_PORT, Program, ToKeeper, pair as packet_pair, receive as receive_packet,
    send as send_packet,
};
pub use entry::Entry;
pub use exchange::exchange;
pub use heard::{read_attributed, tell_speakers, write_with};
pub use host::{
    GuestProcess, KeeperLink, WorkerHandles, ZygoteLink, as_file_user, confined, hurry_thread,
    interrupt, is_full, is_open_for_writing, is_root, process_id, shares_memory, time_since_boot,
    used_bytes,
};
pub use launch::{Launch, Rlimits, Room};
pub use layer::{Broken, Layer, Missing, Posture};
pub use mounter::{Mounter, Wanted, serve_mounter};
pub use probe::{Attempt, probe_guest};
pub use zygote::serve_zygote;
