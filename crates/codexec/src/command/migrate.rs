//! `codexec migrate`: prints a user's settings of a seed as a `config.toml`. Writes no file.

use std::io::Write as _;
use std::process::ExitCode;

use codexec_compat::{Migration, settings_page};

use crate::cli::migrate::MigrateArgs;
use crate::config::HostEnvironment;
use crate::server_files::read_system;

pub(super) fn run(args: MigrateArgs, host: &HostEnvironment) -> anyhow::Result<ExitCode> {
    let text = match args.from {
        None => settings_page(),
        Some(from) => {
            let mut migration = Migration::read(from.seed(), args.path, &host.user())?;
            let servers = read_system(migration.server_files())?;
            migration.add_servers(&servers);
            migration.text()
        }
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
