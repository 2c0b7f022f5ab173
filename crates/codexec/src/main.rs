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
        // The reader of our output has ended, as in `codexec logs | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
        Err(error) => {
            let message = strip_error_numbers(&format!("{error:#}"));
            let _ = writeln!(std::io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}

/// The exit code of a program that SIGPIPE ended, as shells report it.
const BROKEN_PIPE: u8 = 128 + 13;

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.root_cause().downcast_ref::<std::io::Error>().is_some_and(is_broken)
}

/// Removes ` (os error 2)`, which tells people nothing.
fn strip_error_numbers(message: &str) -> String {
    let mut pieces = message.split(" (os error ");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.chars().take_while(char::is_ascii_digit).count();
        match piece.get(digits..).and_then(|rest| rest.strip_prefix(')')) {
            Some(rest) if digits > 0 => text.push_str(rest),
            _ => {
                text.push_str(" (os error ");
                text.push_str(piece);
            }
        }
    }
    text
}
