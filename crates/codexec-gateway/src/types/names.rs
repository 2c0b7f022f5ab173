//! Names of types and fields that every reader takes for names.

use std::collections::HashSet;

use serde_json::Value;

use crate::clean::{clean, clean_line};

const NAME_CHARACTERS: usize = 40;

/// What stands for something else in the languages we write.
const TAKEN: [&str; 20] = [
    "Any",
    "Array",
    "Boolean",
    "Date",
    "Error",
    "False",
    "Function",
    "Literal",
    "Map",
    "None",
    "NotRequired",
    "Number",
    "Object",
    "Promise",
    "Record",
    "String",
    "Symbol",
    "True",
    "TypedDict",
    "Unknown",
];

const PYTHON_KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// The names of types that are given out, each once.
#[derive(Clone, Default)]
pub(super) struct Names {
    used: HashSet<String>,
}

impl Names {
    /// `issue-label` becomes `IssueLabel`, the second one `IssueLabel2`.
    pub(super) fn make(&mut self, wanted: &str) -> String {
        let mut name = String::new();
        let words = wanted.split(|c: char| !c.is_ascii_alphanumeric());
        for word in words.filter(|word| !word.is_empty()) {
            let mut letters = word.chars();
            name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            name.extend(letters);
        }
        let mut name: String = name.chars().take(NAME_CHARACTERS).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || TAKEN.contains(&name.as_str()) {
            name.insert_str(0, "The");
        }
        let mut made = name.clone();
        let mut number = 2;
        while !self.used.insert(made.clone()) {
            made = format!("{name}{number}");
            number += 1;
        }
        made
    }
}

pub(super) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(super) fn is_python_name(name: &str) -> bool {
    is_identifier(name) && !PYTHON_KEYWORDS.contains(&name)
}

/// A text in quotes, as JSON, TypeScript and Python write it; a line stays a line.
pub(super) fn quoted(text: &str) -> String {
    Value::String(clean(text)).to_string()
}

/// A field of TypeScript: as it is when it is an identifier, else quoted.
pub(super) fn property(name: &str) -> String {
    // `new(..)` would be a constructor.
    if is_identifier(name) && name != "new" { name.to_owned() } else { quoted(name) }
}

/// A text that cannot end the `/* */` around it.
pub(super) fn block_comment(text: &str) -> String {
    clean_line(text).replace("*/", "* /")
}

/// A text that cannot end the `"""` around it.
pub(super) fn docstring(text: &str) -> String {
    let text = clean_line(text).replace('\\', "\\\\").replace("\"\"\"", "'''");
    match text.strip_suffix('"') {
        Some(text) => format!("{text}'"),
        None => text,
    }
}
