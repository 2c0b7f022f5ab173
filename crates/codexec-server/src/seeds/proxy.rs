use std::path::PathBuf;
use std::time::Duration;

/// What the toolset `mcpproxy` is set to.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// A configuration of its own that does not enable it has it off; without one it is on.
    pub is_enabled: bool,
    pub timeout: Duration,
    /// Without it or with 0, as many as our own settings allow.
    pub max_tool_calls: Option<u32>,
    /// How many tools `retrieve_tools` gives if nobody says.
    pub tools_limit: usize,
    /// Where `<name>.js` and `<name>.ts` are, to be run by name.
    pub scripts: Option<PathBuf>,
}

impl Default for ProxySettings {
    fn default() -> ProxySettings {
        ProxySettings {
            is_enabled: true,
            timeout: Duration::from_secs(120),
            max_tool_calls: None,
            tools_limit: 15,
            scripts: None,
        }
    }
}
