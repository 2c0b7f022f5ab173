//! The roles in which the binary starts itself again: an engine, loaded and ready to be forked.

use std::io::Write as _;
use std::os::fd::AsFd as _;

use codexec_sandbox::{probe_guest, serve_zygote};

use crate::env::Role;

/// Never returns. Standard input is the control socket.
pub(crate) fn run(role: Role) -> ! {
    match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(control) => match role {
            Role::Js => match codexec_js::Guest::warm() {
                Ok(guest) => serve_zygote(control, |socket| guest.run(socket)),
                Err(error) => fail(&error),
            },
            Role::Probe => serve_zygote(control, probe_guest),
        },
        Err(error) => fail(&error),
    }
}

#[expect(clippy::exit, reason = "a zygote is a process of its own")]
fn fail(error: &dyn std::error::Error) -> ! {
    let _ = writeln!(std::io::stderr(), "error: the zygote did not start: {error}");
    std::process::exit(2)
}
