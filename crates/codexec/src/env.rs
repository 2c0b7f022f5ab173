//! Everything that is read from the environment, and the only place that reads it.
#![expect(clippy::disallowed_methods, reason = "this is that place")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `CODEXEC_HOME`: where all state is kept. Default: `~/.codexec`.
pub(crate) fn home() -> Option<PathBuf> {
    let named = std::env::var_os("CODEXEC_HOME").filter(|path| !path.is_empty());
    named.map(PathBuf::from).or_else(|| Some(user_home()?.join(".codexec")))
}

/// `MCP_CONFIG_PATH`: files with an `mcpServers` key, separated by colons.
pub(crate) fn mcp_config_paths() -> Vec<PathBuf> {
    let paths = std::env::var_os("MCP_CONFIG_PATH").unwrap_or_default();
    std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// `MCP_SERVERS_CONFIG`: one more such file, in JSON or TOML.
pub(crate) fn servers_config() -> Option<PathBuf> {
    std::env::var_os("MCP_SERVERS_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// `CODEXEC_DISCOVER`: `0` leaves other programs' files alone, whatever the settings say.
pub(crate) fn discovers() -> bool {
    std::env::var_os("CODEXEC_DISCOVER").is_none_or(|value| value != "0")
}

/// `CODEXEC_LOG`: how much is said on standard error, for example `debug`. Default: `warn`.
pub(crate) fn log_filter() -> Option<String> {
    variable("CODEXEC_LOG")
}

/// `MCP_BRIDGE_LOG_LEVEL`, and `LOG_LEVEL` where that is a setting of ours: the same for users of
/// the systems that we replace. With the name of the variable.
pub(crate) fn log_level(has_bare: bool) -> Option<(&'static str, String)> {
    let bare = has_bare.then_some("LOG_LEVEL");
    let level = |name| Some((name, variable(name).filter(|level| !level.is_empty())?));
    ["MCP_BRIDGE_LOG_LEVEL"].into_iter().chain(bare).find_map(level)
}

/// `MCP_CONFORMANCE_CONTEXT`: what the conformance suite tells the client that it starts.
pub(crate) fn conformance_context() -> Option<String> {
    variable("MCP_CONFORMANCE_CONTEXT")
}

/// `CODEXEC_TOOLSET`: which tools a client is shown, for example `compact,direct`.
pub(crate) fn toolset() -> Option<String> {
    std::env::var("CODEXEC_TOOLSET").ok().filter(|names| !names.trim().is_empty())
}

/// `PATH`: where interpreters are looked for.
pub(crate) fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Any variable, for `${VAR}` in files that name servers, and those that say where clients keep
/// these: `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `OPENCODE_CONFIG`, `CLINE_MCP_SETTINGS_PATH`,
/// `XDG_CONFIG_HOME`.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What an upstream needs to find its interpreter, its caches and its language. Nothing else of
/// our environment reaches it, except what its own entry names.
pub(crate) fn for_upstreams() -> Vec<(String, String)> {
    let names = [
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TERM",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TZ",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
    ];
    names.into_iter().filter_map(|name| Some((name.to_owned(), variable(name)?))).collect()
}

/// How pip and npm are configured, and what stands between us and their indexes.
pub(crate) fn for_installers() -> Vec<(String, String)> {
    let names = codexec_exec::packages::VARIABLES.iter();
    names.filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect()
}

/// `HOME`: the user's own directory, `~` in settings.
pub(crate) fn user_home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// `DISPLAY`, `WAYLAND_DISPLAY`: whether a browser can be opened where the user sees it.
pub(crate) fn has_screen() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// What this process was started as, if it was started by ourselves.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    Js,
    Probe,
    /// The zygote of programs: Python, Bash, Node.
    Programs,
    Mounter,
    Warden,
    /// What stands above one of the user's servers.
    Supervisor,
    /// A Bash guest's way to tools: the binary under the name `mcp`.
    McpCommand,
}

pub(crate) fn own_role() -> Option<Role> {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    if Path::new(&program).file_name().is_some_and(|name| name == "mcp") {
        return Some(Role::McpCommand);
    }
    let role = match arguments.next() {
        Some(name) if name == "zygote-js" => Role::Js,
        Some(name) if name == "zygote-probe" => Role::Probe,
        Some(name) if name == "zygote-programs" => Role::Programs,
        Some(name) if name == "mounter" => Role::Mounter,
        Some(name) if name == "warden" => Role::Warden,
        Some(name) if name == "supervisor" => return Some(Role::Supervisor),
        Some(_) | None => return None,
    };
    arguments.next().is_none_or(|_: OsString| false).then_some(role)
}

/// The server that a supervisor runs: the program and its arguments.
pub(crate) fn supervised() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(2)
}

/// What follows the name `mcp`.
pub(crate) fn mcp_arguments() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}
