use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use codexec_sandbox::Layer;
use codexec_types::{GuestPaths, Limits};

use crate::packages;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Our own binary, which starts itself again in other roles.
    pub program: PathBuf,
    /// The argument for the role "zygote of the built-in JavaScript engine".
    pub role: &'static str,
    /// The argument for the role "zygote of programs".
    pub programs_role: &'static str,
    /// The argument for the role "mounter".
    pub mounter_role: &'static str,
    /// The limits of every guest. A request can lower its own time and calls; the rest is fixed
    /// when its worker is made.
    pub limits: Limits,
    pub guests: GuestSettings,
    /// The search path for interpreters: our own PATH.
    pub path: OsString,
    /// The user's home directory, which may contain installed packages.
    pub home: Option<PathBuf>,
    /// Directories that guests can write to. No interpreter is started from them.
    pub guest_paths: GuestPaths,
    /// Maximum number of guests that run at once.
    pub max: usize,
    /// Number of idle JavaScript workers to keep ready.
    pub warm: usize,
    /// Maximum number of requests that wait for a worker, and for how long.
    pub queue: usize,
    pub queue_wait: Duration,
    pub lowered: Vec<Layer>,
    pub files: FileSettings,
    /// Directories of the user that guests may work in, including subdirectories.
    pub work_dirs: Vec<PathBuf>,
    pub packages: packages::PackageSettings,
}

/// The interpreters and the environment of guests. Empty settings leave the choice to codexec.
#[derive(Clone, Debug, Default)]
pub struct GuestSettings {
    pub python: PythonSettings,
    /// Defaults to the first `node` on [`Settings::path`].
    pub node: Option<PathBuf>,
    /// The guests' environment variables besides PATH, HOME, LANG and TERM.
    pub environment: Vec<(String, String)>,
}

/// The Python interpreter for guests.
#[derive(Clone, Debug, Default)]
pub struct PythonSettings {
    /// Defaults to the first `python3` on the path.
    pub interpreter: Option<PathBuf>,
    /// A virtual environment. Its interpreter takes precedence.
    pub venv: Option<PathBuf>,
    /// Modules that the zygote imports before any guest starts, if installed.
    pub preload: Vec<String>,
}

/// Limits on what guests may write into a user's directory.
#[derive(Clone, Debug)]
pub struct FileSettings {
    /// Maximum bytes that one execution or session may write before they are committed.
    pub max_bytes: u64,
    pub max_files: u64,
    /// File names that are committed although they would be held back by default.
    pub let_through: Vec<String>,
}
