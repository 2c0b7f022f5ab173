//! The process roles in which the binary re-executes itself.

use std::io::Write as _;
use std::os::fd::AsFd as _;

use codexec_gateway::{serve_warden, supervise};
use codexec_sandbox::{probe_guest, serve_mounter, serve_zygote};

use crate::env::{self, Role};
use crate::mcp_command;

/// Runs this process in its role, and never returns.
#[expect(clippy::exit, reason = "each role is a process of its own")]
pub(crate) fn run(role: Role) -> ! {
    if let Role::McpCommand = role {
        std::process::exit(mcp_command::run(env::mcp_arguments()));
    }
    if let Role::Supervisor = role {
        std::process::exit(supervise(env::supervised_command()));
    }
    // A zygote's control socket is its stdin.
    match (role, std::io::stdin().as_fd().try_clone_to_owned()) {
        (Role::Js, Ok(control)) => match codexec_js::JsGuest::warm() {
            Ok(guest) => serve_zygote(control, |socket| guest.run(socket)),
            Err(error) => report(&error),
        },
        (Role::Probe, Ok(control)) => serve_zygote(control, probe_guest),
        // Its workers run interpreters; none runs a guest inside this binary.
        (Role::Programs, Ok(control)) => serve_zygote(control, drop),
        (Role::Mounter, Ok(control)) => match serve_mounter(&control) {
            Ok(()) => std::process::exit(0),
            Err(error) => report(&error),
        },
        (Role::Warden, Ok(_)) => {
            serve_warden(std::io::stdin().lock());
            std::process::exit(0)
        }
        (Role::McpCommand | Role::Supervisor, Ok(_)) => {}
        (
            Role::Js
            | Role::Probe
            | Role::Programs
            | Role::Mounter
            | Role::Warden
            | Role::Supervisor
            | Role::McpCommand,
            Err(error),
        ) => report(&error),
    }
    std::process::exit(2)
}

fn report(error: &dyn std::error::Error) {
    let _ = writeln!(std::io::stderr(), "error: cannot start in this role: {error}");
}
