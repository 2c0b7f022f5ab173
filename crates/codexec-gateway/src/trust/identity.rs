//! The identity of a server: its program or URL, without its credentials.

use codexec_files::hash_json;
use codexec_mcp_config::{RemoteKind, ServerConfig, TransportConfig};
use serde_json::json;

/// Returns a hash of the program and its arguments, or of the URL. Environment variables and
/// headers, which hold most secrets, are not part of it.
pub(crate) fn identity(config: &ServerConfig) -> String {
    hash_json(&match &config.transport {
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
