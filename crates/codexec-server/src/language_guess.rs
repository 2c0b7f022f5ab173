//! Guesses the language of code whose syntax is not that of the language it was sent as.

use codexec_types::{Admitted, Language, Outcome, ThrownCode};

/// Adds to a syntax error that the code seems to be in another language.
pub(crate) fn name_other_language(mut outcome: Outcome, admitted: &Admitted) -> Outcome {
    if let Outcome::Threw(thrown) = &mut outcome
        && matches!(thrown.code, ThrownCode::SyntaxError | ThrownCode::TranspileError)
        && let Some(other) = guess_other_language(admitted.language(), admitted.code())
    {
        let (title, name) = (title_of(other), other.name());
        thrown.message.push_str(&format!("; the code looks like {title}: set language to {name}"));
    }
    outcome
}

/// Returns the name of a language as it is written in a text.
fn title_of(language: Language) -> &'static str {
    match language {
        Language::JavaScript => "JavaScript",
        Language::TypeScript => "TypeScript",
        Language::Python => "Python",
        Language::Bash => "Bash",
        Language::Node => "Node.js",
    }
}

/// Returns the language that the code seems to be in, if it is clearly not `given`. Call this for
/// code with a syntax error only: a valid program may look like anything.
fn guess_other_language(given: Language, code: &str) -> Option<Language> {
    let count = |is_line: fn(&str) -> bool| {
        code.lines().take(MAX_LINES).filter(|line| is_line(line.trim())).count()
    };
    let (python, script, bash) = (count(is_python), count(is_javascript), count(is_bash));
    match given {
        Language::JavaScript | Language::TypeScript | Language::Node if script == 0 => {
            match (python, bash) {
                (1.., _) => Some(Language::Python),
                (0, 1..) => Some(Language::Bash),
                (0, 0) => None,
            }
        }
        Language::Python if python == 0 => match (script, bash) {
            (1.., _) => Some(Language::TypeScript),
            (0, 1..) => Some(Language::Bash),
            (0, 0) => None,
        },
        _ => None,
    }
}

/// Lines that are read.
const MAX_LINES: usize = 200;

fn is_python(line: &str) -> bool {
    const BLOCKS: [&str; 10] = [
        "if ", "elif ", "for ", "while ", "with ", "except ", "def ", "class ", "async ", "match ",
    ];
    const WHOLE: [&str; 4] = ["else:", "try:", "finally:", "except:"];
    let is_block = line.ends_with(':') && BLOCKS.iter().any(|word| line.starts_with(word));
    let is_quoted = line.contains(['"', '\'', '{', ';']);
    let is_import = line.starts_with("import ") && !is_quoted;
    let is_from = line.starts_with("from ") && line.contains(" import ") && !is_quoted;
    let is_print = line.starts_with("print(f\"") || line.starts_with("print(f'");
    is_block || WHOLE.contains(&line) || is_import || is_from || is_print
}

fn is_javascript(line: &str) -> bool {
    const STARTS: [&str; 9] = [
        "const ",
        "let ",
        "var ",
        "function ",
        "async function ",
        "import {",
        "export ",
        "//",
        "console.",
    ];
    STARTS.iter().any(|start| line.starts_with(start))
        || line.contains("=> ")
        || line.ends_with("};")
}

fn is_bash(line: &str) -> bool {
    const WHOLE: [&str; 5] = ["fi", "done", "esac", "then", "do"];
    const STARTS: [&str; 6] = ["#!/bin/", "echo ", "export ", "if [ ", "set -", "cd "];
    WHOLE.contains(&line) || STARTS.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests;
