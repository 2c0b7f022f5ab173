//! Builds the request from the arguments.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use codexec_exec::GuestStdin;
use codexec_server::ExecutionRequest;
use codexec_types::{Json, Language, RequestedLimits};
use nix::unistd::{getpgrp, tcgetpgrp};

use super::super::arguments;
use crate::cli::ExecArgs;

/// The length of one piece of standard input.
const PIECE_BYTES: usize = 64 << 10;

/// Where the code is.
enum CodeArgument {
    Text(String),
    File(PathBuf),
    Stdin,
    /// A saved script.
    Library,
}

/// What becomes of our standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdinUse {
    /// The code or its input came from it, or the code cannot read it.
    None,
    /// The code reads it.
    Guest,
}

impl StdinUse {
    /// Reads our standard input in a thread of its own, which stops when the code does not read.
    pub(super) fn start(self) -> Option<GuestStdin> {
        if self == StdinUse::None || is_in_background() {
            return None;
        }
        let (sender, stdin) = GuestStdin::channel();
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            let mut buffer = vec![0; PIECE_BYTES];
            while let Ok(length @ 1..) = input.read(&mut buffer) {
                let piece = buffer.get(..length).unwrap_or_default().to_vec();
                if sender.blocking_send(piece).is_err() {
                    return;
                }
            }
        });
        Some(stdin)
    }
}

/// True if reading the terminal would stop this process.
fn is_in_background() -> bool {
    let stdin = std::io::stdin();
    stdin.is_terminal() && tcgetpgrp(stdin).is_ok_and(|group| group != getpgrp())
}

pub(super) fn build(args: ExecArgs) -> anyhow::Result<(ExecutionRequest, StdinUse)> {
    let source = find_code(&args)?;
    let reads_input = args.input.as_deref() == Some("-");
    if reads_input && matches!(source, CodeArgument::Stdin) {
        bail!("the code and --input cannot both come from standard input");
    }
    let is_code_in_stdin = matches!(source, CodeArgument::Stdin);
    let (code, found) = match source {
        CodeArgument::Text(code) => (code, None),
        CodeArgument::File(file) => {
            let code = arguments::read_code(&file)?;
            let language = arguments::language_of(&file).or_else(|| shebang_language(&code));
            (code, language)
        }
        CodeArgument::Stdin => {
            let code = arguments::read_code_from_stdin("as an argument, with --file, or ")?;
            let language = shebang_language(&code);
            (code, language)
        }
        CodeArgument::Library => (String::new(), None),
    };
    let language = match &args.language {
        Some(name) => arguments::parse_language(name)?,
        // The script has its own.
        None if args.script.is_some() => Language::TypeScript,
        None => found.with_context(|| {
            let all = Language::ALL.map(Language::name).join(", ");
            format!("the language is missing: name it with --language (-l): {all}")
        })?,
    };
    let input = match &args.input {
        Some(_) if reads_input => Json::parse(read_input()?).context("--input is not JSON")?,
        Some(text) => Json::parse(text.clone()).context("--input is not JSON")?,
        None => Json::null(),
    };
    let has_input = args.input.is_some();
    let is_read = !is_code_in_stdin && !reads_input && can_read_stdin(&args, language, has_input);
    let asked = RequestedLimits {
        wall: args.timeout,
        tool_calls: args.max_tool_calls,
        allowed_tools: arguments::drop_empty(args.allowed_tools),
        allowed_servers: None,
    };
    let working_dir = args.working_dir.as_deref().map(arguments::absolute_dir).transpose()?;
    let mut request = ExecutionRequest::new(language, code);
    request.input = input;
    request.args = args.args;
    request.working_dir = working_dir;
    request.asked = asked;
    request.words.tools = "--allowed-tools";
    request.words.directory = Some("--working-dir");
    Ok((request, if is_read { StdinUse::Guest } else { StdinUse::None }))
}

/// True for code that can read our standard input. Bash gets `--input` there instead.
fn can_read_stdin(args: &ExecArgs, language: Language, has_input: bool) -> bool {
    if args.script.is_some() {
        return !has_input;
    }
    match language {
        Language::JavaScript | Language::TypeScript => false,
        Language::Python | Language::Node => true,
        Language::Bash => !has_input,
    }
}

fn find_code(args: &ExecArgs) -> anyhow::Result<CodeArgument> {
    let dash = Path::new("-");
    Ok(match (&args.code, &args.file) {
        _ if args.script.is_some() => CodeArgument::Library,
        (None, Some(file)) if file != dash => CodeArgument::File(file.clone()),
        (Some(code), _) if code != "-" => match file_named(code, args.language.is_some())? {
            Some(file) => CodeArgument::File(file),
            None => CodeArgument::Text(code.clone()),
        },
        _ => CodeArgument::Stdin,
    })
}

/// Returns the file that the argument names, if the argument is not code.
fn file_named(code: &str, has_language: bool) -> anyhow::Result<Option<PathBuf>> {
    let is_path_char = |c: char| c.is_alphanumeric() || "._-/~+@".contains(c);
    let path = Path::new(code);
    let has_extension = arguments::language_of(path).is_some();
    if code.is_empty() || !code.chars().all(is_path_char) || !(has_extension || code.contains('/'))
    {
        return Ok(None);
    }
    if path.is_file() {
        return Ok(Some(path.to_owned()));
    }
    if has_extension && !has_language {
        bail!(
            "there is no file {code}; to run this text as code, name its language with --language"
        );
    }
    Ok(None)
}

/// Returns the language that a first line such as `#!/usr/bin/env python3` names.
fn shebang_language(code: &str) -> Option<Language> {
    let line = code.lines().next()?.strip_prefix("#!")?;
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let program = words.find(|word| *word != "env" && !word.starts_with('-'))?;
    match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" => Some(Language::Python),
        "bash" | "sh" => Some(Language::Bash),
        "node" => Some(Language::Node),
        _ => None,
    }
}

fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("--input: standard input is not UTF-8")?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_a_language() {
        let check = |code, expected| assert_eq!(shebang_language(code), expected, "{code}");
        check("#!/usr/bin/env python3\n1", Some(Language::Python));
        check("#!/usr/bin/env -S node --flag\n1", Some(Language::Node));
        check("#!/bin/sh\n", Some(Language::Bash));
        check("#!/usr/bin/perl\n", None);
        check("1", None);
    }

    #[test]
    fn code_is_told_from_file_names() {
        let check = |code, expected: Result<bool, ()>| {
            let found = file_named(code, false).map(|file| file.is_some()).map_err(drop);
            assert_eq!(found, expected, "{code}");
        };
        for code in ["1/2", "return 6*7", "x", "", "a.b", "tools.x.y()", "let a = 'x.ts'"] {
            check(code, Ok(false));
        }
        check("no/such/file.py", Err(()));
        check("/proc/self/status", Ok(true));
    }
}
