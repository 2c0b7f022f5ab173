//! Start one child so that it can do only what its launch plan says.
//!
//! Four kinds of process, each the parent of the next:
//! - the *host* is the server; it never forks, it only asks;
//! - the *zygote* is one small single-threaded process per engine, with the engine loaded;
//! - a *keeper* is a fork of the zygote that sits in one slot's cgroups, empty network namespace
//!   and empty root, so that none of this costs anything when a guest starts;
//! - a *worker* is a fork of a keeper in namespaces of its own. It serves one guest and dies.
//!
//! Invariant: a worker that says it is confined has every layer of its plan in force, except
//! those that the plan lets go by name. Nothing is lowered silently.

#[expect(dead_code, reason = "the guest's first process will hold the broker")]
mod broker;
mod cgroup;
mod control;
mod host;
mod hull;
mod keeper;
mod launch;
mod layer;
mod probe;
mod ruleset;
mod seccomp;
mod sys;
mod worker;
mod zygote;

pub use broker::{BROKER_FD, open_line};
pub use cgroup::{Cgroups, Group, NoCgroups};
pub use control::{Exit, FromKeeper, ToKeeper};
pub use host::{KeeperLink, WorkerHandles, ZygoteLink, confined};
pub use launch::Launch;
pub use layer::{Broken, Layer, Missing, Posture};
pub use probe::{Attempt, probe_guest};
pub use zygote::serve_zygote;
