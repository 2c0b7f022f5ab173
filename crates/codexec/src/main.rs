//! The binary: reads settings, builds the parts, runs. No rule of the product lives here.

mod cli;
mod command;
mod config;
mod env;
mod mcp_command;
mod parts;
mod role;
mod servers;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Before anything else: a zygote must stay single-threaded, and reads no settings.
    if let Some(role) = env::own_role() {
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
