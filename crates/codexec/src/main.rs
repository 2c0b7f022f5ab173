//! The `codexec` binary: reads settings, builds the server from them, and runs one command.
//! Product rules live in the library crates.

mod cli;
mod command;
mod config;
mod env;
mod mcp_command;
mod parts;
mod role;
mod server_files;
mod toolsets;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Comes first: a zygote must stay single-threaded and reads no settings.
    if let Some(role) = env::role() {
        role::run(role);
    }
    let cli = cli::Cli::parse();
    match command::run(cli) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}
