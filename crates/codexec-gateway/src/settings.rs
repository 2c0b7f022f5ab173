use std::{path::PathBuf, time::Duration};

use codexec_types::GuestPaths;

use crate::{CacheUse, TrustMode, Warden};

/// What every upstream is started and held to. No field is optional: each wait and each buffer
/// has a bound.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From the start of the process to its list of tools.
    pub startup_timeout: Duration,
    /// One tool call, from sending it to its answer. Progress begins it anew.
    pub call_timeout: Duration,
    /// The same, whatever progress is told.
    pub call_total_timeout: Duration,
    /// Calls that one server works on at a time.
    pub calls_at_once: usize,
    /// Calls that all servers together work on at a time.
    pub calls_in_all: usize,
    /// Calls that wait for one server, and for how long.
    pub queue: usize,
    pub queue_wait: Duration,
    /// How long a server that failed five times in a row is left alone.
    pub breaker_open: Duration,
    /// How long discovery waits, once, for a server that is still starting.
    pub catalogue_wait: Duration,
    /// The longest line a server may send.
    pub line_bytes: usize,
    /// The longest unwrapped result a guest gets.
    pub result_bytes: usize,
    /// What a server's process finds in its environment besides what its entry says: PATH, HOME
    /// and the like. This crate never reads the environment itself.
    pub env: Vec<(String, String)>,
    /// Where servers start that do not say where, and that are no project's.
    pub user_home: Option<PathBuf>,
    /// No server is started from these.
    pub guest_paths: GuestPaths,
    /// What a variable of ours is set to, for secrets that name one.
    pub variable: fn(&str) -> Option<String>,
    /// Our own directory, where lists, approvals, tokens and logs are kept; `None` keeps nothing.
    pub home: Option<PathBuf>,
    pub trust: TrustMode,
    pub cache: CacheUse,
    pub warden: Warden,
}

impl Settings {
    pub fn new(env: Vec<(String, String)>, warden: Warden) -> Settings {
        Settings {
            startup_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(60),
            call_total_timeout: Duration::from_secs(600),
            calls_at_once: 100,
            calls_in_all: 400,
            queue: 200,
            queue_wait: Duration::from_secs(30),
            breaker_open: Duration::from_secs(30),
            catalogue_wait: Duration::from_secs(5),
            line_bytes: 10 << 20,
            result_bytes: 8 << 20,
            env,
            user_home: None,
            guest_paths: GuestPaths::default(),
            variable: |_| None,
            home: None,
            trust: TrustMode::default(),
            cache: CacheUse::default(),
            warden,
        }
    }
}
