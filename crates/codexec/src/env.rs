//! Every environment variable that codexec reads. No other module reads the environment.
#![expect(clippy::disallowed_methods, reason = "the only module that reads the environment")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `CODEXEC_HOME`: the directory for all state. Default: `~/.codexec`.
pub(crate) fn home() -> Option<PathBuf> {
    let named = std::env::var_os("CODEXEC_HOME").filter(|path| !path.is_empty());
    named.map(PathBuf::from).or_else(|| Some(user_home()?.join(".codexec")))
}

/// `MCP_CONFIG_PATH`: colon-separated files with an `mcpServers` key.
pub(crate) fn mcp_config_paths() -> Vec<PathBuf> {
    let paths = std::env::var_os("MCP_CONFIG_PATH").unwrap_or_default();
    std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// `MCP_SERVERS_CONFIG`: one more server file, in JSON or TOML.
pub(crate) fn servers_config() -> Option<PathBuf> {
    std::env::var_os("MCP_SERVERS_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// `CODEXEC_DISCOVER`: `0` turns off reading other programs' files, whatever the settings say.
pub(crate) fn is_discovery_enabled() -> bool {
    std::env::var_os("CODEXEC_DISCOVER").is_none_or(|value| value != "0")
}

/// `CODEXEC_LOG`: the log filter for stderr, for example `debug`. Default: `warn`.
pub(crate) fn log_filter() -> Option<String> {
    variable("CODEXEC_LOG")
}

/// Returns the log level set for a system that codexec replaces, with the variable's name:
/// `MCP_BRIDGE_LOG_LEVEL`, or `LOG_LEVEL` if `has_bare` (the toolset `codexec` is chosen).
pub(crate) fn log_level(has_bare: bool) -> Option<(&'static str, String)> {
    let bare = has_bare.then_some("LOG_LEVEL");
    let level = |name| Some((name, variable(name).filter(|level| !level.is_empty())?));
    ["MCP_BRIDGE_LOG_LEVEL"].into_iter().chain(bare).find_map(level)
}

/// `MCP_CONFORMANCE_CONTEXT`: the scenario's data, set by the MCP conformance suite.
pub(crate) fn conformance_context() -> Option<String> {
    variable("MCP_CONFORMANCE_CONTEXT")
}

/// `NO_COLOR`, and a `TERM` that knows no colours: text is not coloured.
pub(crate) fn allows_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// `CODEXEC_TOOLSET`: the tools that clients see, for example `compact,direct`.
pub(crate) fn toolset() -> Option<String> {
    std::env::var("CODEXEC_TOOLSET").ok().filter(|names| !names.trim().is_empty())
}

/// `PATH`: the search path for interpreters.
pub(crate) fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Returns any variable. Needed for `${VAR}` in server files, and for the variables that say where
/// MCP clients keep these files: `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `OPENCODE_CONFIG`,
/// `CLINE_MCP_SETTINGS_PATH`, `XDG_CONFIG_HOME`. For traces: `OTEL_EXPORTER_OTLP_ENDPOINT`,
/// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SDK_DISABLED`.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the variables that every upstream inherits: interpreter, caches, locale, proxies.
/// An upstream gets no other variable of codexec's environment, except those its entry names.
pub(crate) fn upstream_variables() -> Vec<(String, String)> {
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

/// Returns the variables that configure pip and npm and the proxies to their indexes.
pub(crate) fn installer_variables() -> Vec<(String, String)> {
    let names = codexec_exec::packages::ENVIRONMENT_VARIABLES.iter();
    names.filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect()
}

/// `HOME`: the user's home directory, `~` in settings.
pub(crate) fn user_home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns true if a browser window would be visible to the user (`DISPLAY`, `WAYLAND_DISPLAY`).
pub(crate) fn has_screen() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// The role of a process that codexec started from its own binary.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    Js,
    Probe,
    /// The zygote of programs: Python, Bash, Node.
    Programs,
    Mounter,
    Warden,
    /// The parent process of one upstream MCP server.
    Supervisor,
    /// The `mcp` command, by which Bash guests call tools.
    McpCommand,
}

pub(crate) fn role() -> Option<Role> {
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

/// Returns the command that a supervisor runs: the program and its arguments.
pub(crate) fn supervised_command() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(2)
}

/// Returns the arguments of the `mcp` command.
pub(crate) fn mcp_arguments() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}
