//! Where each client keeps its files. Nobody has looked yet whether they are there.

use std::path::{Path, PathBuf};

use super::{Client, Reach};

/// A file that may name servers.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub client: Client,
    pub reach: Reach,
    pub path: PathBuf,
    pub holds: Holds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    File,
    /// A directory: each `*.json` in it is a file.
    Files,
}

/// Where we are.
pub struct Whereabouts<'a> {
    pub home: Option<&'a Path>,
    /// The directory we were started in.
    pub here: Option<&'a Path>,
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// The files of these clients, farthest first: the later file wins.
pub fn places(clients: &[Client], whereabouts: &Whereabouts<'_>) -> Vec<Place> {
    let mut found = Vec::new();
    let all = || Client::ALL.into_iter().rev().chain(Client::REPLACED);
    let farthest_first = || all().filter(|client| clients.contains(client));
    for client in farthest_first() {
        let paths = user_files(client, whereabouts);
        found.extend(paths.into_iter().map(|path| Place::file(client, Reach::User, path)));
        if let Some(path) = user_folder(client, whereabouts) {
            let place = Place::file(client, Reach::User, path);
            found.push(Place { holds: Holds::Files, ..place });
        }
    }
    for client in farthest_first() {
        for name in project_files(client) {
            let Some(here) = whereabouts.here else { continue };
            let place = Place::file(client, Reach::Project, here.join(name));
            // In the home directory, some of them are the user's.
            if found.iter().all(|known| known.path != place.path) {
                found.push(place);
            }
        }
    }
    if clients.contains(&Client::ClaudeCode)
        && whereabouts.here.is_some()
        && let Some(path) = whereabouts.claude_json()
    {
        found.push(Place::file(Client::ClaudeCode, Reach::Local, path));
    }
    found
}

impl Place {
    fn file(client: Client, reach: Reach, path: PathBuf) -> Place {
        Place { client, reach, path, holds: Holds::File }
    }
}

impl Whereabouts<'_> {
    fn named(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    fn config(&self) -> Option<PathBuf> {
        let named = self.named("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        named.or_else(|| Some(self.home?.join(".config")))
    }

    fn claude_json(&self) -> Option<PathBuf> {
        let folder = self.named("CLAUDE_CONFIG_DIR");
        folder.or_else(|| self.home.map(Path::to_owned)).map(|folder| folder.join(".claude.json"))
    }

    /// Claude Code's settings, which hold what the user has approved; the nearest last.
    pub fn claude_settings(&self) -> Vec<PathBuf> {
        let folder = self.named("CLAUDE_CONFIG_DIR");
        let folder = folder.or_else(|| Some(self.home?.join(".claude")));
        let user = folder.map(|folder| folder.join("settings.json"));
        let local = self.here.map(|here| here.join(".claude/settings.local.json"));
        user.into_iter().chain(local).collect()
    }
}

/// A folder in which each file names servers.
fn user_folder(client: Client, whereabouts: &Whereabouts<'_>) -> Option<PathBuf> {
    match client {
        Client::Shared => Some(whereabouts.config()?.join("mcp/servers")),
        Client::CodeExecutionMode => Some(whereabouts.home?.join("MCPs")),
        _ => None,
    }
}

/// Farthest first.
fn user_files(client: Client, whereabouts: &Whereabouts<'_>) -> Vec<PathBuf> {
    let at_home = |path: &str| whereabouts.home.map(|home| home.join(path));
    let in_config = |path: &str| whereabouts.config().map(|config| config.join(path));
    // Where macOS has what Linux has in `~/.config`.
    let in_library = |path: &str| at_home(&format!("Library/Application Support/{path}"));
    let found = match client {
        Client::ClaudeCode => vec![whereabouts.claude_json()],
        Client::Cursor => vec![at_home(".cursor/mcp.json")],
        Client::VsCode => vec![in_library("Code/User/mcp.json"), in_config("Code/User/mcp.json")],
        Client::Codex => {
            let folder = whereabouts.named("CODEX_HOME").or_else(|| at_home(".codex"));
            vec![folder.map(|folder| folder.join("config.toml"))]
        }
        Client::Gemini => {
            vec![Some("/etc/gemini-cli/settings.json".into()), at_home(".gemini/settings.json")]
        }
        Client::Copilot => vec![at_home(".copilot/mcp-config.json")],
        Client::Windsurf => vec![at_home(".codeium/windsurf/mcp_config.json")],
        Client::Zed => vec![in_config("zed/settings.json")],
        Client::OpenCode => vec![
            in_config("opencode/opencode.json"),
            in_config("opencode/opencode.jsonc"),
            whereabouts.named("OPENCODE_CONFIG"),
        ],
        Client::Goose => vec![in_config("goose/config.yaml")],
        Client::Cline => {
            const OLD: &str =
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
            let named = whereabouts.named("CLINE_MCP_SETTINGS_PATH");
            let now = at_home(".cline/data/settings/cline_mcp_settings.json");
            vec![in_library(OLD), in_config(OLD), at_home(".cline/mcp.json"), named.or(now)]
        }
        Client::ClaudeDesktop => vec![
            in_library("Claude/claude_desktop_config.json"),
            in_config("Claude/claude_desktop_config.json"),
        ],
        Client::Shared => vec![in_config("mcp/servers.json")],
        Client::CodeExecutor => {
            vec![in_library("Claude/mcp.json"), in_config("claude-code/mcp.json")]
        }
        // All that is in its folder.
        Client::CodeExecutionMode => Vec::new(),
        Client::Mcpproxy => vec![at_home(".mcpproxy/mcp_config.json")],
        Client::Own | Client::Named => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

/// Whatever stands here must be among the names that guests cannot write in a directory of the
/// user's, or they could have programs started outside of their sandbox.
fn project_files(client: Client) -> &'static [&'static str] {
    match client {
        Client::ClaudeCode => &[".mcp.json"],
        Client::Cursor => &[".cursor/mcp.json"],
        Client::VsCode => &[".vscode/mcp.json"],
        Client::Codex => &[".codex/config.toml"],
        Client::Gemini => &[".gemini/settings.json"],
        Client::Copilot => &[".github/mcp.json"],
        Client::Zed => &[".zed/settings.json"],
        Client::OpenCode => &["opencode.json", "opencode.jsonc"],
        Client::Windsurf
        | Client::Goose
        | Client::Cline
        | Client::ClaudeDesktop
        | Client::Shared
        | Client::CodeExecutor
        | Client::CodeExecutionMode
        | Client::Mcpproxy
        | Client::Own
        | Client::Named => &[],
    }
}
