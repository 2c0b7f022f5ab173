//! Finds the files that a server's arguments make it run.

use std::path::{Path, PathBuf};

use super::{StartPlanner, is_program};
use crate::config::{is_code, is_interpreter};

/// Options followed by code, or by a folder with code.
const CODE_OPTIONS: [&str; 17] = [
    "--cwd",
    "--dir",
    "--directory",
    "--experimental-loader",
    "--from",
    "--import",
    "--loader",
    "--prefix",
    "--project",
    "--require",
    "--script",
    "--with",
    "--with-editable",
    "--with-requirements",
    "-C",
    "-jar",
    "-r",
];
/// Options not followed by a path.
const TEXT_OPTIONS: [&str; 6] = ["--eval", "--print", "-c", "-e", "-m", "-p"];
const SHELLS: [&str; 6] = ["bash", "dash", "fish", "ksh", "sh", "zsh"];
/// Programs that run the command in their arguments.
const WRAPPERS: [&str; 11] = [
    "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout",
];

impl StartPlanner<'_> {
    /// Returns the paths of code among the arguments: an interpreter's script, values of options
    /// for code, and every other file that has a code extension or is executable. Folders and other
    /// files are the server's data.
    pub(super) fn code_files(&self) -> Vec<PathBuf> {
        let is_interpreter = is_interpreter(self.name());
        let mut files = Vec::new();
        let mut before = "";
        let mut is_first = is_interpreter;
        for arg in &self.plan.args {
            let follows = std::mem::replace(&mut before, arg);
            if TEXT_OPTIONS.contains(&follows) && (is_interpreter || self.is_wrapper()) {
                is_first = false;
                continue;
            }
            let (option, value) = match arg.strip_prefix('-') {
                Some(_) => arg.split_once('=').unwrap_or((arg, "")),
                None => (follows, arg.as_str()),
            };
            let path = self.plan.cwd.join(value);
            let is_named = CODE_OPTIONS.contains(&option) && is_path(value);
            let is_script = is_first && !arg.starts_with('-');
            let is_code_file =
                !value.is_empty() && (path.is_file() && is_code(&path) || is_program(&path));
            if is_named || is_code_file || (is_script && (is_path(value) || is_code(&path))) {
                files.push(path);
            }
            is_first &= arg.starts_with('-');
        }
        files.extend(self.files_in_command_line());
        files
    }

    /// Returns the words after a shell's `-c`, or the arguments of a program that runs another.
    pub(super) fn wrapped_words(&self) -> Vec<&str> {
        if !self.is_wrapper() {
            return Vec::new();
        }
        let words = self.plan.args.iter().flat_map(|arg| arg.split_whitespace());
        words.map(|word| word.trim_matches(['"', '\'', ';', '&', '|', '(', ')'])).collect()
    }

    fn is_wrapper(&self) -> bool {
        SHELLS.contains(&self.name()) || WRAPPERS.contains(&self.name())
    }

    fn files_in_command_line(&self) -> Vec<PathBuf> {
        let words = self.wrapped_words();
        let behind = std::iter::once("").chain(words.iter().copied());
        let pairs = behind.zip(words.iter().copied());
        let files = pairs.filter_map(|(before, word)| {
            let path = self.plan.cwd.join(word);
            let is_code_file = path.is_file() && (is_code(&path) || is_program(&path));
            (!word.is_empty() && (is_code_file || before == "cd")).then_some(path)
        });
        files.collect()
    }
}

/// Returns true if the value looks like a path rather than a name.
fn is_path(value: &str) -> bool {
    Path::new(value).is_absolute()
        || value.starts_with('.')
        || (value.contains('/') && !value.starts_with('@') && !value.contains("://"))
}
