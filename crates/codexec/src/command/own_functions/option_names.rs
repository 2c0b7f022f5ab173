//! Translates field and function names in error messages to options and commands.

use codexec_functions::{Argument, OwnFunction};

/// Replaces field and function names in a message by options and commands.
pub(super) fn use_option_names(message: &str) -> String {
    let mut text = message.to_owned();
    if let Some((field, rest)) = message.split_once(": ")
        && let Some((_, option)) = options().find(|(name, _)| *name == field)
    {
        text = format!("{option}: {rest}");
    }
    for (field, option) in options() {
        text = text.replace(&format!("`{field}`"), option);
    }
    for (function, command) in commands() {
        text = replace_word(&text, function, &format!("`{command}`"));
    }
    text
}

/// Returns the arguments of own functions that have an option, with the option.
fn options() -> impl Iterator<Item = (&'static str, &'static str)> {
    let arguments = OwnFunction::ALL.iter().flat_map(|function| function.spec().arguments());
    arguments.filter_map(|&Argument { name, option, .. }| Some((name, option?)))
}

/// Returns the own functions that have a command, with the command.
fn commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    let specs = OwnFunction::ALL.iter().map(|function| function.spec());
    specs.filter_map(|spec| Some((spec.name, spec.command?)))
}

/// Replaces a name, but not as a part of a longer one.
fn replace_word(text: &str, word: &str, replacement: &str) -> String {
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut pieces = text.split(word).peekable();
    let mut replaced = String::new();
    while let Some(piece) = pieces.next() {
        replaced.push_str(piece);
        let Some(next) = pieces.peek() else { break };
        let is_part = replaced.ends_with(is_in_name) || next.starts_with(is_in_name);
        replaced.push_str(if is_part { word } else { replacement });
    }
    replaced
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn field_names_become_options() {
        let check = |message: &str, expected: &str| assert_eq!(use_option_names(message), expected);
        check("limit: 0 is not allowed; it must be 1", "--limit: 0 is not allowed; it must be 1");
        check("`tags` has 60 entries", "--tag has 60 entries");
        check("there is none; list_scripts shows", "there is none; `codexec scripts list` shows");
        check("a name: with a colon", "a name: with a colon");
        check("save_and_run_script or run_script", "save_and_run_script or `codexec scripts run`");
    }

    #[test]
    fn every_command_of_the_table_exists() {
        for (function, command) in commands() {
            let mut found = &Cli::command();
            for word in command.split(' ').skip(1) {
                let inner = found.find_subcommand(word);
                found = inner.unwrap_or_else(|| panic!("{function}: there is no {command}"));
            }
        }
    }
}
