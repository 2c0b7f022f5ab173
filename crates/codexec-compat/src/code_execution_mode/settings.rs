use std::time::Duration;

/// The settings of the toolset `code-execution-mode`.
#[derive(Clone, Debug)]
pub struct BridgeSettings {
    pub timeout: Duration,
    pub max_timeout: Duration,
    pub output: OutputMode,
}

/// The format of results for the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputMode {
    #[default]
    Compact,
    /// TOON, where that is shorter.
    Toon,
}

impl Default for BridgeSettings {
    fn default() -> BridgeSettings {
        BridgeSettings {
            timeout: Duration::from_secs(30),
            max_timeout: Duration::from_secs(120),
            output: OutputMode::default(),
        }
    }
}
