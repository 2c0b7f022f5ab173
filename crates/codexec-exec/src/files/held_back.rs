//! Files that a guest may write for itself, but that are never committed to the user's directory:
//! programs run or obey them without being asked to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::dir_tree::{DirTree, FileKind, FileNode};

/// The reasons to hold back files, and their names.
///
/// THREAT[FIL-2], THREAT[CFG-5]: names match at any depth and case-insensitively. A leading `*`
/// matches any prefix; a name with a `/` matches the end of a path. Every project file that we read
/// MCP servers from is listed.
///
/// Files that only a deliberate command or a remote service uses are not listed: `package.json`,
/// `Makefile`, `pyproject.toml`, `.gitignore`, `.github/workflows`.
const TABLE: &[(&str, &[&str])] = &[
    ("repositories run hooks and obey settings", REPOSITORIES),
    ("it names programs that MCP clients start", SERVERS),
    ("agents follow it as instructions or settings", AGENTS),
    ("editors obey it and may run it", EDITORS),
    ("shells run it by themselves", SHELLS),
    ("logins and desktops read it by themselves", HOMES),
    ("Node.js runs what is in it", &["node_modules", ".pnp.cjs", ".pnp.loader.mjs", ".yarn"]),
    ("Python runs it by itself", PYTHON),
    ("package managers and compilers obey it", TOOLS),
    ("git runs it by itself", &[".husky", ".githooks", ".pre-commit-config.yaml", "lefthook.yml"]),
];

const REPOSITORIES: &[&str] =
    &[".git", ".gitmodules", ".gitconfig", ".hg", ".hgrc", ".svn", ".jj", ".bzr"];

const SERVERS: &[&str] = &[
    ".mcp.json",
    "mcp.json",
    "mcp_config.json",
    ".code-executor.json",
    ".codexec",
    ".codexec.toml",
];

const AGENTS: &[&str] = &[
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".augment",
    ".claude",
    ".clinerules",
    ".codex",
    ".continue",
    ".cursor",
    ".cursorrules",
    ".gemini",
    ".github/agents",
    ".github/chatmodes",
    ".github/instructions",
    ".github/prompts",
    ".goose",
    ".goosehints",
    ".junie",
    ".kiro",
    ".opencode",
    ".qwen",
    ".roo",
    ".roomodes",
    ".rules",
    ".trae",
    ".windsurf",
    ".windsurfrules",
    "AGENT.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
    "CLAUDE.md",
    "GEMINI.md",
    "QWEN.md",
    "SKILL.md",
    "copilot-instructions.md",
    "opencode.json",
    "opencode.jsonc",
];

const EDITORS: &[&str] = &[
    "*.code-workspace",
    "*.sublime-project",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".exrc",
    ".fleet",
    ".helix",
    ".idea",
    ".nvim.lua",
    ".nvimrc",
    ".vim",
    ".vimrc",
    ".vscode",
    ".zed",
];

const SHELLS: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".direnv",
    ".envrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".logout",
    ".mise.toml",
    ".mise",
    ".profile",
    ".tcshrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "mise.toml",
];

const HOMES: &[&str] = &[
    ".aws",
    ".config",
    ".docker",
    ".gnupg",
    ".kube",
    ".local",
    ".netrc",
    ".pam_environment",
    ".ssh",
    ".xinitrc",
    ".xprofile",
    ".xsession",
];

const PYTHON: &[&str] =
    &["*.pth", "*.pyc", "*.pyo", "__pycache__", "sitecustomize.py", "usercustomize.py", ".venv"];

const TOOLS: &[&str] = &[
    ".bundle",
    ".cargo",
    ".gdbinit",
    ".lldbinit",
    ".mvn",
    ".npmrc",
    ".pnpmfile.cjs",
    ".pylintrc",
    ".pypirc",
    ".yarnrc",
    ".yarnrc.yml",
];

const ENVIRONMENT: &str = "a virtual environment runs what is in it";

/// Returns the reason to hold back an entry, if there is one.
pub(crate) fn find_reason(
    layer: &DirTree,
    path: &Path,
    node: &FileNode,
    let_through: &[String],
) -> Option<&'static str> {
    let name = path.file_name()?;
    if node.kind == FileKind::Special {
        return Some("it is a pipe, a socket or a device");
    }
    // A setting that lets a folder through also applies to its contents.
    let is_named = |part: &OsStr| let_through.iter().any(|word| part.as_bytes() == word.as_bytes());
    if path.iter().any(is_named) {
        return None;
    }
    for (reason, patterns) in TABLE {
        let hit = patterns.iter().find(|pattern| matches_pattern(pattern, path, name));
        if hit.is_some_and(|pattern| !let_through.iter().any(|word| word == pattern)) {
            return Some(reason);
        }
    }
    // A virtual environment may have any name.
    let is_environment = node.kind == FileKind::Dir
        && layer
            .find(&path.join("pyvenv.cfg"))
            .is_ok_and(|found| found.is_some_and(|marker| marker.kind != FileKind::Whiteout));
    is_environment.then_some(ENVIRONMENT)
}

fn matches_pattern(pattern: &str, path: &Path, name: &OsStr) -> bool {
    if let Some(ending) = pattern.strip_prefix('*') {
        let (name, ending) = (name.as_bytes(), ending.as_bytes());
        let start = name.len().checked_sub(ending.len());
        return start
            .and_then(|start| name.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(ending));
    }
    let mut parts = path.iter().rev();
    pattern.rsplit('/').all(|part| parts.next().is_some_and(|own| own.eq_ignore_ascii_case(part)))
}

#[cfg(test)]
mod tests;
