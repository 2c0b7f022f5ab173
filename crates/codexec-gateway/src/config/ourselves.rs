//! Whether an entry starts us, or a system that we replace: one that does is left out, or we would
//! list ourselves, and start ourselves without end.

use std::path::Path;

use super::{Client, ServerConfig, StdioConfig, TransportConfig, World};

const OUR_NAME: &str = "codexec";
/// Programs that start the package which they are told first.
const RUNNERS: [&str; 8] = ["npx", "uvx", "bunx", "pnpm", "yarn", "pipx", "uv", "npm"];
/// Programs that start an image.
const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];
/// Programs that start what follows.
const WRAPPERS: [&str; 21] = [
    "sh", "bash", "zsh", "dash", "fish", "env", "exec", "nohup", "nice", "ionice", "setsid",
    "stdbuf", "sudo", "doas", "timeout", "time", "node", "bun", "deno", "python", "python3",
];
/// What the systems that we replace are called, as servers, packages, images and programs.
const REPLACED: [(&str, Client); 6] = [
    ("code-executor", Client::CodeExecutor),
    ("code-executor-mcp", Client::CodeExecutor),
    ("mcp-server-code-execution-mode", Client::CodeExecutionMode),
    ("mcp_server_code_execution_mode", Client::CodeExecutionMode),
    ("mcpproxy", Client::Mcpproxy),
    ("mcpproxy-go", Client::Mcpproxy),
];
/// A runner may be told where a package is before it is told its name.
const PACKAGE_WORDS: usize = 3;

pub(super) fn is_ourselves(program: &StdioConfig, world: &World<'_>) -> bool {
    let words = words(program);
    let Some((named, rest)) = words.split_first() else { return false };
    if stem(named) == OUR_NAME || (world.is_own_program)(named) {
        return true;
    }
    // The package behind a runner, with or without a version: `codexec@1.2`.
    RUNNERS.contains(&stem(named))
        && rest.iter().find(|word| is_package(word)).is_some_and(|word| package(word) == OUR_NAME)
}

/// Which of the systems that we replace this server is, by its name or by what it starts.
pub fn replaced(config: &ServerConfig) -> Option<Client> {
    let known = |name: &str| {
        let found = REPLACED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, client)| *client)
    };
    let TransportConfig::Stdio(program) = &config.transport else {
        return known(config.name.as_str());
    };
    let words = words(program);
    let (named, rest) = words.split_first()?;
    let parts = named.split('/').chain([stem(named)]);
    let packages = rest.iter().filter(|word| is_package(word)).map(|word| package(word));
    let found = match stem(named) {
        runner if RUNNERS.contains(&runner) => packages.take(PACKAGE_WORDS).find_map(known),
        runner if CONTAINERS.contains(&runner) => packages.into_iter().find_map(known),
        _ => parts.into_iter().find_map(known),
    };
    found.or_else(|| known(config.name.as_str()))
}

/// What is started, and what it is told, without options and what only wraps it.
fn words(program: &StdioConfig) -> Vec<&str> {
    let mut words = vec![program.command.as_str()];
    // A shell gets a whole line as one argument.
    for arg in &program.args {
        words.extend(arg.split_whitespace());
    }
    let is_option = |word: &str| word.starts_with('-') || word.contains('=');
    let is_time = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let words = words.into_iter().filter(|word| !is_option(word) && !is_time(word));
    words.skip_while(|word| WRAPPERS.contains(&stem(word))).collect()
}

fn is_package(word: &str) -> bool {
    !matches!(word, "dlx" | "run" | "exec" | "tool" | "x")
}

/// Its name alone: `@scope/name@1.2`, `host/owner/name:tag` and `git+https://host/name.git`.
fn package(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.split(['@', ':']).next().unwrap_or(name);
    name.strip_suffix(".git").unwrap_or(name)
}

fn stem(word: &str) -> &str {
    Path::new(word).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}
