//! Whether an entry starts us: one that does is left out, or we would list ourselves, and start
//! ourselves without end.

use std::path::Path;

use super::{StdioConfig, World};

const OUR_NAME: &str = "codexec";
/// Programs that start the package which they are told first.
const RUNNERS: [&str; 8] = ["npx", "uvx", "bunx", "pnpm", "yarn", "pipx", "uv", "npm"];
/// Programs that start what follows.
const WRAPPERS: [&str; 21] = [
    "sh", "bash", "zsh", "dash", "fish", "env", "exec", "nohup", "nice", "ionice", "setsid",
    "stdbuf", "sudo", "doas", "timeout", "time", "node", "bun", "deno", "python", "python3",
];

pub(super) fn is_ourselves(program: &StdioConfig, world: &World<'_>) -> bool {
    let mut words = vec![program.command.as_str()];
    // A shell gets a whole line as one argument.
    for arg in &program.args {
        words.extend(arg.split_whitespace());
    }
    let is_option = |word: &str| word.starts_with('-') || word.contains('=');
    let is_time = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = words.into_iter().filter(|word| !is_option(word) && !is_time(word));
    let named = words.find(|word| !WRAPPERS.contains(&stem(word)));
    let Some(named) = named else { return false };
    if stem(named) == OUR_NAME || (world.is_own_program)(named) {
        return true;
    }
    // The package behind a runner, with or without a version: `codexec@1.2`.
    let is_package = |word: &&str| !matches!(*word, "dlx" | "run" | "exec" | "tool" | "x");
    RUNNERS.contains(&stem(named))
        && words.find(is_package).is_some_and(|package| package.split('@').next() == Some(OUR_NAME))
}

fn stem(word: &str) -> &str {
    Path::new(word).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}
