use std::path::PathBuf;
use std::time::Duration;

/// The settings of the toolset `mcpproxy`.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// False if there is an MCPProxy configuration that does not enable it.
    pub is_enabled: bool,
    pub timeout: Duration,
    /// `None` or 0 means the limit of codexec's own settings.
    pub max_tool_calls: Option<u32>,
    /// The default number of tools that `retrieve_tools` returns.
    pub tools_limit: usize,
    /// The folder of `<name>.js` and `<name>.ts`, which can be run by name.
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
