//! The locations of each client's config files. Does not check that the files exist.

use std::path::{Path, PathBuf};

use super::{ConfigOwner, ConfigScope};

/// The location of a file, or of a directory of files, that may define servers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfigLocation {
    pub(crate) client: ConfigOwner,
    pub(crate) reach: ConfigScope,
    pub(crate) path: PathBuf,
    pub(crate) holds: LocationKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocationKind {
    File,
    /// A directory whose `*.json` files are read.
    Files,
}

/// The directories and variables that the locations depend on.
pub(crate) struct LocationEnv<'a> {
    pub(crate) home: Option<&'a Path>,
    /// The directory that codexec was started in.
    pub(crate) here: Option<&'a Path>,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// Returns the locations of these clients' files, in ascending precedence.
pub(crate) fn find_config_locations(
    clients: &[ConfigOwner],
    whereabouts: &LocationEnv<'_>,
) -> Vec<ConfigLocation> {
    let mut found = Vec::new();
    let all = || ConfigOwner::ALL.into_iter().rev().chain(ConfigOwner::REPLACED);
    let ascending = || all().filter(|client| clients.contains(client));
    for client in ascending() {
        let paths = user_files(client, whereabouts);
        found.extend(
            paths.into_iter().map(|path| ConfigLocation::file(client, ConfigScope::User, path)),
        );
        if let Some(path) = user_folder(client, whereabouts) {
            let place = ConfigLocation::file(client, ConfigScope::User, path);
            found.push(ConfigLocation { holds: LocationKind::Files, ..place });
        }
    }
    for client in ascending() {
        for name in project_files(client) {
            let Some(here) = whereabouts.here else { continue };
            let place = ConfigLocation::file(client, ConfigScope::Project, here.join(name));
            // If codexec runs in the home directory, some project files are the user's files.
            if found.iter().all(|known| known.path != place.path) {
                found.push(place);
            }
        }
    }
    if clients.contains(&ConfigOwner::ClaudeCode)
        && whereabouts.here.is_some()
        && let Some(path) = whereabouts.claude_json()
    {
        found.push(ConfigLocation::file(ConfigOwner::ClaudeCode, ConfigScope::Local, path));
    }
    found
}

impl ConfigLocation {
    fn file(client: ConfigOwner, reach: ConfigScope, path: PathBuf) -> ConfigLocation {
        ConfigLocation { client, reach, path, holds: LocationKind::File }
    }
}

impl LocationEnv<'_> {
    /// Returns the path in a variable, if it is set and not empty.
    fn path_from(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    fn config_dir(&self) -> Option<PathBuf> {
        let named = self.path_from("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        named.or_else(|| Some(self.home?.join(".config")))
    }

    fn claude_json(&self) -> Option<PathBuf> {
        let folder = self.path_from("CLAUDE_CONFIG_DIR");
        folder.or_else(|| self.home.map(Path::to_owned)).map(|folder| folder.join(".claude.json"))
    }

    /// Returns Claude Code's settings files, which hold approvals, in ascending precedence.
    pub(crate) fn claude_settings(&self) -> Vec<PathBuf> {
        let folder = self.path_from("CLAUDE_CONFIG_DIR");
        let folder = folder.or_else(|| Some(self.home?.join(".claude")));
        let user = folder.map(|folder| folder.join("settings.json"));
        let local = self.here.map(|here| here.join(".claude/settings.local.json"));
        user.into_iter().chain(local).collect()
    }
}

/// Returns the directory of a client whose files each define servers.
fn user_folder(client: ConfigOwner, whereabouts: &LocationEnv<'_>) -> Option<PathBuf> {
    match client {
        ConfigOwner::Shared => Some(whereabouts.config_dir()?.join("mcp/servers")),
        ConfigOwner::CodeExecutionMode => Some(whereabouts.home?.join("MCPs")),
        _ => None,
    }
}

/// Returns the user's files of a client, in ascending precedence.
fn user_files(client: ConfigOwner, whereabouts: &LocationEnv<'_>) -> Vec<PathBuf> {
    let at_home = |path: &str| whereabouts.home.map(|home| home.join(path));
    let in_config = |path: &str| whereabouts.config_dir().map(|config| config.join(path));
    // The equivalent of `~/.config` on macOS.
    let in_library = |path: &str| at_home(&format!("Library/Application Support/{path}"));
    let found = match client {
        ConfigOwner::ClaudeCode => vec![whereabouts.claude_json()],
        ConfigOwner::Cursor => vec![at_home(".cursor/mcp.json")],
        ConfigOwner::VsCode => {
            vec![in_library("Code/User/mcp.json"), in_config("Code/User/mcp.json")]
        }
        ConfigOwner::Codex => {
            let folder = whereabouts.path_from("CODEX_HOME").or_else(|| at_home(".codex"));
            vec![folder.map(|folder| folder.join("config.toml"))]
        }
        ConfigOwner::Gemini => {
            vec![Some("/etc/gemini-cli/settings.json".into()), at_home(".gemini/settings.json")]
        }
        ConfigOwner::Copilot => vec![at_home(".copilot/mcp-config.json")],
        ConfigOwner::Windsurf => vec![at_home(".codeium/windsurf/mcp_config.json")],
        ConfigOwner::Zed => vec![in_config("zed/settings.json")],
        ConfigOwner::OpenCode => vec![
            in_config("opencode/opencode.json"),
            in_config("opencode/opencode.jsonc"),
            whereabouts.path_from("OPENCODE_CONFIG"),
        ],
        ConfigOwner::Goose => vec![in_config("goose/config.yaml")],
        ConfigOwner::Cline => {
            const OLD: &str =
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
            let named = whereabouts.path_from("CLINE_MCP_SETTINGS_PATH");
            let now = at_home(".cline/data/settings/cline_mcp_settings.json");
            vec![in_library(OLD), in_config(OLD), at_home(".cline/mcp.json"), named.or(now)]
        }
        ConfigOwner::ClaudeDesktop => vec![
            in_library("Claude/claude_desktop_config.json"),
            in_config("Claude/claude_desktop_config.json"),
        ],
        ConfigOwner::Shared => vec![in_config("mcp/servers.json")],
        ConfigOwner::CodeExecutor => {
            vec![in_library("Claude/mcp.json"), in_config("claude-code/mcp.json")]
        }
        // Its servers are in a directory; see `user_folder`.
        ConfigOwner::CodeExecutionMode => Vec::new(),
        ConfigOwner::Mcpproxy => vec![at_home(".mcpproxy/mcp_config.json")],
        ConfigOwner::Codexec | ConfigOwner::Named => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

/// Returns the files of a client in a project directory. Guests must not be able to write any of
/// them in a user's directory, or they could start programs outside of their sandbox.
fn project_files(client: ConfigOwner) -> &'static [&'static str] {
    match client {
        ConfigOwner::ClaudeCode => &[".mcp.json"],
        ConfigOwner::Cursor => &[".cursor/mcp.json"],
        ConfigOwner::VsCode => &[".vscode/mcp.json"],
        ConfigOwner::Codex => &[".codex/config.toml"],
        ConfigOwner::Gemini => &[".gemini/settings.json"],
        ConfigOwner::Copilot => &[".github/mcp.json"],
        ConfigOwner::Zed => &[".zed/settings.json"],
        ConfigOwner::OpenCode => &["opencode.json", "opencode.jsonc"],
        ConfigOwner::Windsurf
        | ConfigOwner::Goose
        | ConfigOwner::Cline
        | ConfigOwner::ClaudeDesktop
        | ConfigOwner::Shared
        | ConfigOwner::CodeExecutor
        | ConfigOwner::CodeExecutionMode
        | ConfigOwner::Mcpproxy
        | ConfigOwner::Codexec
        | ConfigOwner::Named => &[],
    }
}
