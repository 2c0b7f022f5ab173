//! Identifiers, and the quoting and escaping of everything else.

use std::collections::HashSet;

use codexec_types::{clean_line, clean_text};
use serde_json::Value;

const NAME_CHARACTERS: usize = 40;

/// Names with another meaning in TypeScript or Python.
const RESERVED: [&str; 20] = [
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

/// The type names of one tool, each used once.
#[derive(Clone, Default)]
pub(super) struct TypeNames {
    used: HashSet<String>,
}

impl TypeNames {
    /// Returns a unique type name: `issue-label` becomes `IssueLabel`, or else `IssueLabel2`.
    pub(super) fn make_unique(&mut self, text: &str) -> String {
        let mut name = String::new();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        for word in words.filter(|word| !word.is_empty()) {
            let mut letters = word.chars();
            name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            name.extend(letters);
        }
        let mut name: String = name.chars().take(NAME_CHARACTERS).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || RESERVED.contains(&name.as_str())
        {
            name.insert_str(0, "The");
        }
        let mut unique = name.clone();
        let mut number = 2;
        while !self.used.insert(unique.clone()) {
            unique = format!("{name}{number}");
            number += 1;
        }
        unique
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

/// Returns a string literal that is valid in JSON, TypeScript and Python, on one line.
pub(super) fn quote(text: &str) -> String {
    Value::String(clean_text(text)).to_string()
}

/// Returns a TypeScript property name: the identifier itself, or a quoted name.
pub(super) fn property_name(name: &str) -> String {
    // An unquoted `new(..)` would be a constructor.
    if is_identifier(name) && name != "new" { name.to_owned() } else { quote(name) }
}

/// Returns a text that cannot end the `/* */` around it.
pub(super) fn escape_block_comment(text: &str) -> String {
    clean_line(text).replace("*/", "* /")
}

/// Returns a text that cannot end the `"""` around it.
pub(super) fn escape_docstring(text: &str) -> String {
    let text = clean_line(text).replace('\\', "\\\\").replace("\"\"\"", "'''");
    match text.strip_suffix('"') {
        Some(text) => format!("{text}'"),
        None => text,
    }
}
