use std::io::Write as _;
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, bail};
use codexec_types::{ServerName, find_nearest_names};

use crate::cli::servers::LoginArgs;
use crate::env;
use crate::parts::Parts;

pub(super) async fn run(parts: &Parts, args: &LoginArgs) -> anyhow::Result<ExitCode> {
    let names = parts.gateway.server_names();
    let Some(server) = names.iter().find(|name| name.as_str() == args.name) else {
        let near = find_nearest_names(&args.name, names.iter().map(ServerName::as_str), 3);
        match near.as_slice() {
            [] => bail!("there is no server {:?}; see `codexec servers list`", args.name),
            near => bail!("there is no server {:?}; did you mean {}?", args.name, near.join(", ")),
        }
    };
    let show = |address: &_| show_address(&ToString::to_string(address), args.no_browser);
    let done = parts.gateway.log_in(server, show).await.with_context(|| server.to_string())?;
    let mut out = std::io::stdout();
    match done.issuer {
        Some(issuer) => writeln!(out, "logged in to {server} through {issuer}")?,
        None => writeln!(out, "logged in to {server}")?,
    }
    if !done.is_in_keyring {
        let place = parts.home.join("tokens").join(format!("{server}.json"));
        writeln!(out, "no keyring is available; the token is in {}", place.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the address, even if a browser opens: this machine may have no visible screen.
fn show_address(address: &str, no_browser: bool) {
    let mut err = std::io::stderr();
    let _ = writeln!(err, "Open this address in a browser on this machine:\n\n{address}\n");
    let _ = writeln!(err, "Waiting up to 5 minutes for the login.");
    if !no_browser && env::has_screen() {
        open_browser(address);
    }
}

/// Opens the browser. The address is one argument, never shell text; the gateway has checked
/// that it is http or https.
fn open_browser(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    #[expect(clippy::disallowed_methods, reason = "the user's own browser, opened for the user")]
    let mut command = tokio::process::Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            tokio::spawn(async move { child.wait().await });
        }
        Err(error) => tracing::info!(%error, program, "no browser was opened"),
    }
}
