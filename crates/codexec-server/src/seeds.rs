//! The settings of the systems that we replace, where they have a meaning of their own here. What
//! they share with ours is read into ours, where settings are read.

mod bridge;
mod executor;
mod proxy;

pub use bridge::{BridgeSettings, OutputMode};
pub use executor::ExecutorSettings;
pub use proxy::ProxySettings;

#[derive(Clone, Debug, Default)]
pub struct Seeds {
    /// Code Executor MCP.
    pub executor: ExecutorSettings,
    /// MCP Server Code Execution Mode.
    pub bridge: BridgeSettings,
    /// MCPProxy.
    pub proxy: ProxySettings,
}
