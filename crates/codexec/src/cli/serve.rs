//! The arguments of `codexec serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// Serve HTTP at this address instead of standard input and output, for example
    /// 127.0.0.1:7777; MCP is at /mcp, and at /mcp/TOOLSET
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve HTTP at a Unix socket
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Serve standard input and output as well
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Allow HTTP without TLS at an address that other machines can reach
    #[arg(long)]
    pub(crate) allow_plain_http: bool,
}

impl ServeArgs {
    pub(crate) fn serves_http(&self) -> bool {
        self.http.is_some() || self.socket.is_some()
    }

    pub(crate) fn serves_stdio(&self) -> bool {
        self.stdio || !self.serves_http()
    }
}

/// Parses an address; a port alone, or with `localhost`, is on loopback.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        Err(_) => text.parse().map_err(|_| "write it like 127.0.0.1:7777 or [::1]:7777".to_owned()),
    }
}
