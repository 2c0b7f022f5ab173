//! Files that a guest may write for itself, but that are never committed to the user's directory:
//! programs run or obey them without being asked to.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

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
    (REPOSITORY, REPOSITORIES),
    ("it names programs that MCP clients start", SERVERS),
    ("agents follow it as instructions or settings", AGENTS),
    ("editors obey it and may run it", EDITORS),
    ("shells run it by themselves", SHELLS),
    ("logins and desktops read it by themselves", HOMES),
    ("Node.js runs what is in it", NODE),
    ("Python runs it by itself", PYTHON),
    ("package managers and compilers obey it", TOOLS),
    (HOOKS, HOOK_FILES),
];

const REPOSITORIES: &[&str] = &[
    ".bzr",
    ".fslckout",
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".hg",
    ".hgrc",
    ".jj",
    ".pijul",
    ".repo",
    ".sl",
    ".svn",
    "_darcs",
    "_FOSSIL_",
];

const SERVERS: &[&str] = &[
    ".mcp.json",
    "mcp.json",
    "mcp_config.json",
    ".code-executor.json",
    ".codexec",
    ".codexec.toml",
];

const AGENTS: &[&str] = &[
    ".agent",
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".augment",
    ".augment-guidelines",
    ".claude",
    ".claude.json",
    ".cline",
    ".clinerules",
    ".clinerules-code",
    ".codex",
    ".continue",
    ".crush",
    ".crush.json",
    ".cursor",
    ".cursorrules",
    ".factory",
    ".gemini",
    ".github/agents",
    ".github/chatmodes",
    ".github/hooks",
    ".github/instructions",
    ".github/prompts",
    ".github/skills",
    ".goose",
    ".goosehints",
    ".junie",
    ".kilocode",
    ".kilocodemodes",
    ".kilocoderules",
    ".kiro",
    ".llmrules",
    ".mcp",
    ".opencode",
    ".openhands",
    ".qwen",
    ".roo",
    ".roomodes",
    ".roorules",
    ".rules",
    ".sourcery.yaml",
    ".trae",
    ".windsurf",
    ".windsurfrules",
    "AGENT.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
    "CLAUDE.md",
    "copilot-instructions.md",
    "crush.json",
    "CRUSH.md",
    "GEMINI.md",
    "opencode.json",
    "opencode.jsonc",
    "QWEN.md",
    "SKILL.md",
    "WARP.md",
];

const EDITORS: &[&str] = &[
    "*.code-workspace",
    "*.sublime-project",
    "*.sublime-workspace",
    ".bsp",
    ".classpath",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".emacs",
    ".emacs.d",
    ".exrc",
    ".fleet",
    ".gvimrc",
    ".helix",
    ".idea",
    ".kakrc",
    ".lite_project.lua",
    ".local.vimrc",
    ".lvimrc",
    ".nvim",
    ".nvim.lua",
    ".nvimrc",
    ".project",
    ".settings",
    ".theia",
    ".vim",
    ".vimrc",
    ".vs",
    ".vscode",
    ".ycm_extra_conf.py",
    ".zed",
];

const SHELLS: &[&str] = &[
    ".autoenv",
    ".autoenv.zsh",
    ".bash_aliases",
    ".bash_completion",
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
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    ".profile",
    ".rtx.toml",
    ".tcshrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "mise.local.toml",
    "mise.toml",
    "mise/config.toml",
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
    ".pythonrc",
    ".pythonrc.py",
    ".screenrc",
    ".ssh",
    ".tmux.conf",
    ".xinitrc",
    ".xprofile",
    ".Xresources",
    ".xsession",
    ".xsessionrc",
];

const PYTHON: &[&str] = &[
    "*.pth",
    "*.pyc",
    "*.pyo",
    ".pdbrc",
    ".venv",
    "__pycache__",
    "ipython_config.py",
    "jupyter_config.py",
    "jupyter_notebook_config.py",
    "jupyter_server_config.py",
    "sitecustomize.py",
    "usercustomize.py",
];

const NODE: &[&str] = &["node_modules", ".pnp.cjs", ".pnp.js", ".pnp.loader.mjs", ".yarn"];

const HOOK_FILES: &[&str] = &[
    ".git-hooks",
    ".githooks",
    ".hooks",
    ".husky",
    ".lefthook",
    ".lefthook.json",
    ".lefthook.toml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".lintstagedrc",
    ".lintstagedrc.cjs",
    ".lintstagedrc.js",
    ".lintstagedrc.mjs",
    ".overcommit.yml",
    ".pre-commit-config.yaml",
    ".simple-git-hooks.cjs",
    ".simple-git-hooks.js",
    ".simple-git-hooks.json",
    "lefthook-local.yaml",
    "lefthook-local.yml",
    "lefthook.json",
    "lefthook.toml",
    "lefthook.yaml",
    "lefthook.yml",
];

const TOOLS: &[&str] = &[
    ".bundle",
    ".byebugrc",
    ".cargo",
    ".gdbearlyinit",
    ".gdbinit",
    ".ghci",
    ".guile",
    ".iex.exs",
    ".irbrc",
    ".lldbinit",
    ".mvn",
    ".npmrc",
    ".octaverc",
    ".perldb",
    ".pnpmfile.cjs",
    ".pryrc",
    ".psqlrc",
    ".pylintrc",
    ".pypirc",
    ".RData",
    ".rdbgrc",
    ".Renviron",
    ".Rprofile",
    ".sbtrc",
    ".sqliterc",
    ".yarnrc",
    ".yarnrc.yml",
    "startup.m",
];

const ENVIRONMENT: &str = "a virtual environment runs what is in it";

const REPOSITORY: &str = "repositories run hooks and obey settings";
const HOOKS: &str = "git runs it by itself";
const LINKED: &str = "a link of a name that programs obey leads to it";

/// Names that can be made again at any time: deleting them loses nothing.
const REPRODUCIBLE: &[&str] = &["__pycache__", "*.pyc", "*.pyo", "node_modules"];

/// The largest settings file of a repository that is read.
const MAX_CONFIG_BYTES: u64 = 256 << 10;

/// Decides which entries of one layer stay out of one directory of the user's.
pub(crate) struct HeldBackRules<'a> {
    target: &'a DirTree,
    let_through: &'a [String],
    /// Paths that programs obey because the user's own files point at them.
    paths: Vec<(PathBuf, &'static str)>,
}

impl<'a> HeldBackRules<'a> {
    pub(crate) fn new(target: &'a DirTree, let_through: &'a [String]) -> HeldBackRules<'a> {
        let names = TABLE.iter().flat_map(|(_, patterns)| patterns.iter()).map(Path::new);
        let links = names.filter(|name| find_name_reason(name, let_through).is_some());
        let goals = links.filter_map(|link| normalize(&target.read_link(link).ok()?));
        let hooks = hooks_path(target).and_then(|hooks| normalize(Path::new(&hooks)));
        let goals = goals.map(|goal| (goal, LINKED));
        let paths = goals.chain(hooks.map(|hooks| (hooks, HOOKS))).collect();
        HeldBackRules { target, let_through, paths }
    }

    /// Returns why an entry of the guest's layer is held back, or nothing if it is not.
    pub(crate) fn find_reason(
        &self,
        layer: &DirTree,
        path: &Path,
        node: &FileNode,
    ) -> Option<&'static str> {
        if node.kind == FileKind::Special {
            return Some("it is a pipe, a socket or a device");
        }
        if self.is_let_through(path) {
            return None;
        }
        let by_path =
            || self.paths.iter().find(|(held, _)| path == held).map(|(_, reason)| *reason);
        let by_content = || match node.kind {
            FileKind::Dir => find_content_reason(&[layer, self.target], path),
            _ => None,
        };
        self.find_name(path).or_else(by_path).or_else(by_content)
    }

    /// Returns why an entry of the user's is not deleted, although the guest deleted the folder
    /// that it is in.
    pub(crate) fn find_deletion_reason(
        &self,
        path: &Path,
        node: &FileNode,
    ) -> Option<&'static str> {
        let name = path.file_name()?;
        if REPRODUCIBLE.iter().any(|pattern| matches_pattern(pattern, path, name)) {
            return None;
        }
        self.find_reason(self.target, path, node)
    }

    fn find_name(&self, path: &Path) -> Option<&'static str> {
        find_name_reason(path, self.let_through)
    }

    /// Letting a folder through lets its content through.
    fn is_let_through(&self, path: &Path) -> bool {
        is_let_through(path, self.let_through)
    }
}

/// THREAT[FIL-11]: returns why a guest may not write in a directory at all: the directory itself,
/// or one above it, is held back. `inside` is the path below the directory that the user allowed.
pub(crate) fn find_location_reason(
    allowed: &DirTree,
    inside: &Path,
    let_through: &[String],
) -> Option<&'static str> {
    if is_let_through(inside, let_through) {
        return None;
    }
    let folders = inside.ancestors().filter(|path| !path.as_os_str().is_empty());
    folders
        .filter_map(|path| {
            find_name_reason(path, let_through).or_else(|| find_content_reason(&[allowed], path))
        })
        .next()
}

fn is_let_through(path: &Path, let_through: &[String]) -> bool {
    path.iter().any(|part| let_through.iter().any(|word| part.as_bytes() == word.as_bytes()))
}

fn find_name_reason(path: &Path, let_through: &[String]) -> Option<&'static str> {
    let name = path.file_name()?;
    // Every folder that has this file may be a repository.
    if name == "HEAD" && !let_through.iter().any(|word| word == "HEAD") {
        return Some(REPOSITORY);
    }
    TABLE.iter().find_map(|(reason, patterns)| {
        let hit = patterns.iter().find(|pattern| matches_pattern(pattern, path, name))?;
        let is_named = let_through.iter().any(|word| word == hit);
        (!is_named).then_some(*reason)
    })
}

/// A virtual environment or a repository may have any name.
fn find_content_reason(trees: &[&DirTree], folder: &Path) -> Option<&'static str> {
    let has = |name: &str| {
        let path = folder.join(name);
        let mut found = trees.iter().filter_map(|tree| tree.find(&path).ok().flatten());
        found.any(|node| node.kind != FileKind::Whiteout)
    };
    if has("pyvenv.cfg") || has("conda-meta") {
        return Some(ENVIRONMENT);
    }
    let is_repository = has("HEAD") && (has("objects") || has("refs") || has("commondir"));
    is_repository.then_some(REPOSITORY)
}

/// Returns the folder from which the user's repository runs its hooks, if it names one.
fn hooks_path(target: &DirTree) -> Option<String> {
    let (file, _) = target.open_file(Path::new(".git/config")).ok()?;
    let mut text = String::new();
    file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let is_hooks = name.trim().eq_ignore_ascii_case("hookspath");
        is_hooks.then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// Returns a relative path without `.` and `..`, or nothing if the path leads out.
fn normalize(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!clean.as_os_str().is_empty()).then_some(clean)
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
