use std::time::Duration;

use crate::Warden;

/// What every upstream is started and held to. No field is optional: each wait and each buffer
/// has a bound.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From the start of the process to its list of tools.
    pub startup_timeout: Duration,
    /// One tool call, from sending it to its answer.
    pub call_timeout: Duration,
    /// How long discovery waits, once, for a server that is still starting.
    pub catalogue_wait: Duration,
    /// The longest line a server may send.
    pub line_bytes: usize,
    /// The longest unwrapped result a guest gets.
    pub result_bytes: usize,
    /// What a server's process finds in its environment besides what its entry says: PATH, HOME
    /// and the like. This crate never reads the environment itself.
    pub env: Vec<(String, String)>,
    pub warden: Warden,
}

impl Settings {
    pub fn new(env: Vec<(String, String)>, warden: Warden) -> Settings {
        Settings {
            startup_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(60),
            catalogue_wait: Duration::from_secs(5),
            line_bytes: 10 << 20,
            result_bytes: 8 << 20,
            env,
            warden,
        }
    }
}
