//! The identity of a server: its program or URL, without its credentials.

use serde_json::json;

use super::digest::digest;
use crate::{RemoteKind, ServerConfig, TransportConfig};

/// Returns a hash of the program and its arguments, or of the URL. Environment variables and
/// headers, which hold most secrets, are not part of it.
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
