//! Starts a child process that can do only what its launch plan allows.
//!
//! Four kinds of process, each the parent of the next:
//! - the *host* is the server. The host never forks; it sends requests to the zygote;
//! - the *zygote* is one small single-threaded process per engine, with the engine loaded;
//! - a *keeper* is a fork of the zygote. It sits in one slot's cgroups, with an empty network
//!   namespace and an empty root, so that starting a guest pays for none of this;
//! - a *worker* is a fork of a keeper in its own namespaces. It serves one guest and exits.
//!
//! Programs (Python, Bash, Node) need files and processes. Before their zygote forks keepers, it
//! builds a minimal read-only rootfs in its own PID namespace. The first process of their workers
//! is our own init.
//!
//! Invariant: a worker that reports itself confined has every layer of its plan in force, except
//! the layers that the plan lowers by name. No layer is lowered silently.

mod attach;
mod attributed_socket;
mod broker;
mod cgroup;
mod control;
mod entry;
mod exchange;
mod exec;
mod host;
mod init;
mod keeper;
mod launch;
mod layer;
mod mounter;
mod overlay;
mod probe;
mod program_query;
mod rootfs;
mod ruleset;
mod seccomp;
mod shared_layers;
mod sys;
mod worker;
mod zygote;

pub use attributed_socket::{enable_peer_credentials, read_attributed, write_with_fds};
pub use broker::connect_to_broker;
pub use cgroup::{Cgroups, CgroupsUnavailable, MemoryGauge, SlotCgroup};
pub use control::{
    FirstProcess, FromInit, FromKeeper, LayerLimits, NAMESPACES, Overlay, OverlayRenewal,
    OverlayTask, PROXY_PORT, ProgramCommand, ProgramGuest, ToKeeper, WorkerExit,
    pair as packet_pair, receive as receive_packet, send as send_packet,
};
pub use entry::WorkerEntry;
pub use exchange::swap_directories;
pub use host::{
    GuestProcess, KeeperLink, WorkerHandles, ZygoteLink, interrupt_process, is_filesystem_full,
    is_open_for_writing, is_root, parse_confined, process_id, raise_thread_priority,
    run_as_file_user, shares_memory, time_since_boot, used_bytes,
};
pub use launch::{Launch, Rlimits, Rootfs};
pub use layer::{Layer, LayerError, MissingLayer, Posture};
pub use mounter::{MountRequest, Mounter, serve_mounter};
pub use probe::{EscapeAttempt, probe_guest};
pub use program_query::query_program;
pub use sys::share_heaps;
pub use zygote::serve_zygote;
