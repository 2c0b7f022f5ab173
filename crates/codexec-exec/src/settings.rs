use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use codexec_sandbox::Layer;
use codexec_types::{GuestPaths, Limits};

use crate::packages;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Our own binary: it starts itself again in other roles.
    pub program: PathBuf,
    /// The argument that makes it the zygote of JavaScript's engine.
    pub role: &'static str,
    /// The argument that makes it the zygote of programs.
    pub programs_role: &'static str,
    /// The argument that makes it the mounter.
    pub mounter_role: &'static str,
    /// What every guest gets. A request can narrow its own time and calls, the rest is fixed when
    /// its worker is made.
    pub limits: Limits,
    pub python: Python,
    /// By default the first `node` on `path`.
    pub node: Option<PathBuf>,
    /// Where interpreters are looked for: our own PATH.
    pub path: OsString,
    /// Where the user's own packages are.
    pub home: Option<PathBuf>,
    /// No interpreter is started from these.
    pub guest_paths: GuestPaths,
    /// What guests find in their environment beside PATH, HOME, LANG and TERM.
    pub environment: Vec<(String, String)>,
    /// How many guests may run at once.
    pub max: usize,
    /// How many workers wait for one when nothing goes on.
    pub warm: usize,
    /// How many requests may wait for a worker, and how long.
    pub queue: usize,
    pub queue_wait: Duration,
    pub lowered: Vec<Layer>,
    pub packages: packages::Settings,
}

/// Which Python guests get.
#[derive(Clone, Debug, Default)]
pub struct Python {
    /// By default the first `python3` on the path.
    pub interpreter: Option<PathBuf>,
    /// A virtual environment; its interpreter is then the one.
    pub venv: Option<PathBuf>,
    /// Modules that are imported before any guest starts, where they are installed.
    pub preload: Vec<String>,
}
