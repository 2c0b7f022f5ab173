//! Detects entries that start codexec itself, or a system that codexec replaces. Such an entry is
//! ignored: codexec would list itself, and start itself without end.

use std::path::Path;

use super::{ConfigEnv, ConfigOwner, ServerConfig, StdioConfig, TransportConfig};

const OUR_NAME: &str = "codexec";
/// Programs that run the package named by their first argument.
const RUNNERS: [&str; 8] = ["npx", "uvx", "bunx", "pnpm", "yarn", "pipx", "uv", "npm"];
/// Programs that run a container image.
const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];
/// Programs that run the command after them.
const WRAPPERS: [&str; 21] = [
    "sh", "bash", "zsh", "dash", "fish", "env", "exec", "nohup", "nice", "ionice", "setsid",
    "stdbuf", "sudo", "doas", "timeout", "time", "node", "bun", "deno", "python", "python3",
];
/// Names of the systems that codexec replaces, as servers, packages, images and programs.
const REPLACED: [(&str, ConfigOwner); 6] = [
    ("code-executor", ConfigOwner::CodeExecutor),
    ("code-executor-mcp", ConfigOwner::CodeExecutor),
    ("mcp-server-code-execution-mode", ConfigOwner::CodeExecutionMode),
    ("mcp_server_code_execution_mode", ConfigOwner::CodeExecutionMode),
    ("mcpproxy", ConfigOwner::Mcpproxy),
    ("mcpproxy-go", ConfigOwner::Mcpproxy),
];
/// How many arguments of a runner can name the package: its source may come before its name.
const PACKAGE_WORDS: usize = 3;

/// Returns true if the program is codexec.
pub(super) fn starts_codexec(program: &StdioConfig, world: &ConfigEnv<'_>) -> bool {
    let words = command_words(program);
    let Some((command, rest)) = words.split_first() else { return false };
    if stem(command) == OUR_NAME || (world.is_own_program)(command) {
        return true;
    }
    // The package that a runner starts, with or without a version: `codexec@1.2`.
    RUNNERS.contains(&stem(command))
        && rest
            .iter()
            .find(|word| is_package_name(word))
            .is_some_and(|word| bare_package_name(word) == OUR_NAME)
}

/// Returns the replaced system that this server is, judged by its name or its command.
pub(crate) fn find_replaced_system(config: &ServerConfig) -> Option<ConfigOwner> {
    let known = |name: &str| {
        let found = REPLACED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, client)| *client)
    };
    let TransportConfig::Stdio(program) = &config.transport else {
        return known(config.name.as_str());
    };
    let words = command_words(program);
    let (program, rest) = words.split_first()?;
    let parts = program.split('/').chain([stem(program)]);
    let packages =
        rest.iter().filter(|word| is_package_name(word)).map(|word| bare_package_name(word));
    let found = match stem(program) {
        runner if RUNNERS.contains(&runner) => packages.take(PACKAGE_WORDS).find_map(known),
        runner if CONTAINERS.contains(&runner) => packages.into_iter().find_map(known),
        _ => parts.into_iter().find_map(known),
    };
    found.or_else(|| known(config.name.as_str()))
}

/// Returns the program and its arguments, without options and without wrapper programs.
fn command_words(program: &StdioConfig) -> Vec<&str> {
    let mut words = vec![program.command.as_str()];
    // A shell takes a whole command line as one argument.
    for arg in &program.args {
        words.extend(arg.split_whitespace());
    }
    let is_option = |word: &str| word.starts_with('-') || word.contains('=');
    let is_time = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let words = words.into_iter().filter(|word| !is_option(word) && !is_time(word));
    words.skip_while(|word| WRAPPERS.contains(&stem(word))).collect()
}

fn is_package_name(word: &str) -> bool {
    !matches!(word, "dlx" | "run" | "exec" | "tool" | "x")
}

/// Returns `name` of `@scope/name@1.2`, `host/owner/name:tag` or `git+https://host/name.git`.
fn bare_package_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.split(['@', ':']).next().unwrap_or(name);
    name.strip_suffix(".git").unwrap_or(name)
}

fn stem(word: &str) -> &str {
    Path::new(word).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}
