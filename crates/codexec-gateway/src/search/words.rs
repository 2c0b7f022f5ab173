//! From text to the terms that are compared.

use std::{collections::HashMap, sync::LazyLock};

/// The terms of a text in order: split at everything that is not a letter or digit and inside
/// `camelCase`, lower case, without the words that say nothing, each cut to its stem.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        for part in split_camel(word) {
            let part = part.to_lowercase();
            if !part.is_empty() && !STOP.contains(&part.as_str()) {
                terms.push(stem(&part));
            }
        }
    }
    terms
}

/// `getHTTPStatus` as `get`, `HTTP`, `Status`.
fn split_camel(word: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let characters: Vec<char> = word.chars().collect();
    for (at, &c) in characters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| characters.get(at));
        let is_after_lower = before.is_some_and(|b| b.is_lowercase() || b.is_numeric());
        let is_word_head = before.is_some_and(|b| b.is_uppercase())
            && characters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let is_start = c.is_uppercase() && (is_after_lower || is_word_head);
        match parts.last_mut() {
            Some(part) if !is_start => part.push(c),
            _ => parts.push(c.to_string()),
        }
    }
    parts
}

/// Light and English: plurals and the endings of verbs, so that `listing`, `listed` and `lists`
/// meet. It need not be right, only the same on both sides.
fn stem(word: &str) -> String {
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    const ENDINGS: [(&str, &str); 16] = [
        ("ations", "at"),
        ("ation", "at"),
        ("ions", ""),
        ("ion", ""),
        ("ies", "y"),
        ("sses", "ss"),
        ("ings", ""),
        ("ing", ""),
        ("ied", "y"),
        ("ed", ""),
        ("ers", ""),
        ("er", ""),
        ("ors", ""),
        ("or", ""),
        ("ly", ""),
        ("ment", ""),
    ];
    let is_plural = word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us");
    let cut = ENDINGS.iter().find_map(|(ending, instead)| {
        let root = word.strip_suffix(ending)?;
        let is_root = root.len() >= 3 && root.bytes().any(|byte| b"aeiouy".contains(&byte));
        is_root.then(|| format!("{root}{instead}"))
    });
    let mut root = match cut {
        Some(root) => root,
        None if is_plural => word.trim_end_matches('s').to_owned(),
        None => word.to_owned(),
    };
    let bytes = root.as_bytes();
    let is_doubled = bytes.len() > 3 && bytes.last() == bytes.iter().rev().nth(1);
    let is_fine_double = root.ends_with("ss") || root.ends_with("ll");
    if (is_doubled && !is_fine_double) || (root.len() > 3 && root.ends_with('e')) {
        root.pop();
    }
    root
}

const STOP: [&str; 74] = [
    "a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "do", "does", "each", "for", "from", "given", "has", "have", "how", "i", "if",
    "in", "inside", "into", "is", "it", "its", "just", "like", "may", "me", "my", "need", "no",
    "not", "of", "on", "only", "or", "our", "out", "over", "please", "so", "some", "such", "than",
    "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to",
    "tool", "us", "use", "want", "was", "what", "when", "which", "with", "you",
];

/// Words that interfaces use for one another. From the common vocabulary of programming
/// interfaces, and kept small: a wide net catches everything.
const KIN: [&[&str]; 33] = [
    &["get", "read", "fetch", "retrieve", "view", "show", "display", "open", "load", "obtain"],
    &["list", "enumerate", "browse", "listing", "overview", "available"],
    &["search", "find", "query", "lookup", "locate", "discover", "match", "look"],
    &["create", "add", "new", "make", "insert", "generate", "build", "register"],
    &["update", "edit", "modify", "change", "set", "patch", "alter", "replace", "adjust"],
    &["delete", "remove", "drop", "erase", "destroy", "clear", "discard", "purge"],
    &["write", "save", "store", "put", "persist", "record", "overwrite"],
    &["send", "post", "publish", "submit", "deliver"],
    &["run", "execute", "invoke", "call", "launch", "trigger", "perform"],
    &["stop", "cancel", "abort", "kill", "terminate", "end"],
    &["copy", "duplicate", "clone"],
    &["move", "rename", "transfer", "relocate"],
    &["compare", "diff", "difference", "delta"],
    &["convert", "transform", "translate", "turn"],
    &["info", "information", "detail", "metadata", "status", "stat", "property", "state"],
    &["describe", "schema", "structure", "definition", "column", "field"],
    &["file", "document"],
    &["folder", "directory", "dir"],
    &["image", "picture", "photo", "screenshot", "media"],
    &["mail", "email", "message", "inbox"],
    &["issue", "ticket", "bug"],
    &["user", "person", "account", "member", "people", "contact"],
    &["url", "link", "webpage", "page", "web", "website", "site", "internet", "http"],
    &["database", "db", "sql", "table", "row"],
    &["time", "date", "clock", "hour", "day", "timezone", "zone", "today", "now"],
    &["repository", "repo", "project"],
    &["commit", "revision", "history", "log", "version"],
    &["size", "large", "big", "length", "count", "number"],
    &["text", "content", "string", "body"],
    &["note", "comment", "remark", "annotation"],
    &["tree", "hierarchy", "nested", "recursive"],
    &["permission", "access", "allow", "right"],
    &["switch", "checkout", "select", "choose"],
];

/// The stems of the words that stand for this stem elsewhere.
pub(super) fn kin(stem_of_word: &str) -> &'static [String] {
    static TABLE: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
        let mut table: HashMap<String, Vec<String>> = HashMap::new();
        for group in KIN {
            let mut stems: Vec<String> = group.iter().map(|word| stem(word)).collect();
            stems.sort();
            stems.dedup();
            for word in &stems {
                let others = stems.iter().filter(|other| *other != word).cloned();
                table.entry(word.clone()).or_default().extend(others);
            }
        }
        table
    });
    TABLE.get(stem_of_word).map_or(&[], Vec::as_slice)
}
