//! Which server an entry stands for: what is started or reached, not how it is logged in to.

use serde_json::json;

use super::digest::digest;
use crate::{RemoteKind, ServerConfig, TransportConfig};

/// The same for the same program and arguments, or the same address. No secret can be had from it
/// but one that stands in an argument or an address, and of that only a hash.
pub(crate) fn identity(config: &ServerConfig) -> String {
    digest(&match &config.transport {
        TransportConfig::Stdio(program) => json!({
            "command": program.command,
            "args": program.args,
            "cwd": program.cwd.as_ref().map(|cwd| cwd.as_os_str().as_encoded_bytes()),
        }),
        TransportConfig::Remote(remote) => json!({
            "url": remote.url.as_str(),
            "sse": remote.kind == RemoteKind::Sse,
        }),
    })
}
