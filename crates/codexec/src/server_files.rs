//! The files that name the user's MCP servers: where they are, their changes, and our own file.

mod config_editor;
mod control;
mod file_watcher;
mod reload;

use std::path::{Path, PathBuf};

use codexec_compat::{Seed, SeedServerFiles};
use codexec_mcp_config::{
    ConfigOwner, ConfigProblem, ParsedConfig, ServerRules, ServerSources, SourceEnv,
};
use codexec_server::mcp::ToolsetNames;

pub(crate) use config_editor::ConfigEditor;
pub(crate) use control::ask_for_restart;
pub(crate) use reload::Reloader;

use crate::env;

/// Returns the server files of this user and project. The seeds whose toolset is chosen are
/// replaced; their own server files are read too if `discovers`.
pub(crate) fn server_sources(
    own: PathBuf,
    named: &[PathBuf],
    mut rules: ServerRules,
    program: &Path,
    (toolsets, discovers): (&ToolsetNames, bool),
) -> ServerSources {
    if !env::is_discovery_enabled() {
        rules.discovery.clients.clear();
    }
    let from_variables = env::mcp_config_paths().into_iter().chain(env::servers_config());
    let named = from_variables.chain(named.iter().cloned()).collect();
    let mut sources = ServerSources::new(own, named, rules, program, source_env());
    let chosen = Seed::ALL.into_iter().filter(|seed| seed.is_chosen(toolsets));
    sources.replace_systems(chosen.filter_map(Seed::config_owner).collect(), discovers);
    sources
}

/// Reads the servers of one seed.
pub(crate) fn read_system(files: SeedServerFiles) -> Result<ParsedConfig, ConfigProblem> {
    let SeedServerFiles { owner: replaced, mut named, is_alone } = files;
    let client = replaced.filter(|_| !is_alone);
    match client {
        Some(ConfigOwner::CodeExecutor) => named.extend(env::mcp_config_paths()),
        Some(ConfigOwner::CodeExecutionMode) => named.extend(env::servers_config()),
        Some(_) | None => {}
    }
    ServerSources::read_system(client, named, replaced, source_env())
}

fn source_env() -> SourceEnv {
    SourceEnv {
        user_home: env::user_home(),
        here: std::env::current_dir().ok(),
        path: env::path(),
        variable: env::variable,
    }
}
