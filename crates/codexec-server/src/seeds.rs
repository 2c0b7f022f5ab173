//! The settings of toolsets that reproduce other systems ("seeds"), as far as they have no
//! equivalent in codexec's own settings. The others are mapped to codexec's own when settings are
//! read.

mod bridge;
mod executor;
mod proxy;

pub use bridge::{BridgeSettings, OutputMode};
pub use executor::ExecutorSettings;
pub use proxy::ProxySettings;

/// The settings of the three seeds.
#[derive(Clone, Debug, Default)]
pub struct Seeds {
    /// Code Executor MCP.
    pub executor: ExecutorSettings,
    /// MCP Server Code Execution Mode.
    pub bridge: BridgeSettings,
    /// MCPProxy.
    pub proxy: ProxySettings,
}
