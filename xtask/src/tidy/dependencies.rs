//! Checks every dependency of the workspace, direct or not: its licence and its source.

use serde_json::Value;

use super::text_field;

/// Crates that nothing may bring in, with the reason.
const FORBIDDEN: &[(&str, &str)] = &[("openssl-sys", "TLS comes from rustls")];

/// The source of the public registry. Written in two pieces, see `documents`.
pub(crate) const REGISTRY: &str =
    concat!("registry+https://github.com/rust-lang/crates", ".io-index");

/// Checks the packages of `cargo metadata` with dependencies against the list in deny.toml.
pub(crate) fn check(metadata: &Value, deny: &str) -> Vec<String> {
    let allowed = allowed_licences(deny);
    if allowed.is_empty() {
        return vec!["deny.toml: has no list `allow` of licences, add one".to_owned()];
    }
    let packages = metadata.get("packages").and_then(Value::as_array);
    packages.into_iter().flatten().flat_map(|package| check_package(package, &allowed)).collect()
}

fn check_package(package: &Value, allowed: &[&str]) -> Vec<String> {
    let (name, version) = (text_field(package, "name"), text_field(package, "version"));
    let (licence, source) = (text_field(package, "license"), text_field(package, "source"));
    // Packages without a source are the workspace's own.
    if source.is_empty() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if source != REGISTRY {
        findings.push(format!(
            "Cargo.lock: `{name}` {version} comes from `{source}`, use a version from the registry"
        ));
    }
    if !Expression::new(licence).check(allowed) {
        findings.push(format!(
            "Cargo.lock: `{name}` {version} has the licence `{licence}`, use another crate, or add \
             the licence to deny.toml"
        ));
    }
    if let Some((_, reason)) = FORBIDDEN.iter().find(|(forbidden, _)| *forbidden == name) {
        findings.push(format!(
            "Cargo.lock: `{name}` is forbidden ({reason}), find its user with `cargo tree -i {name}`"
        ));
    }
    findings
}

/// Reads the list `allow` of deny.toml: one quoted licence a line.
fn allowed_licences(deny: &str) -> Vec<&str> {
    let lines = deny.lines().map(str::trim).skip_while(|line| *line != "allow = [").skip(1);
    let items = lines.take_while(|line| *line != "]");
    items.filter_map(|line| line.strip_prefix('"')?.strip_suffix("\",")).collect()
}

/// A licence expression (SPDX), read from left to right. Old crates write `/` for `OR`.
struct Expression<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Expression<'a> {
    fn new(text: &'a str) -> Expression<'a> {
        let mut words = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find([' ', '(', ')', '/']) {
            let (word, after) = rest.split_at(at);
            let (sign, after) = after.split_at(1);
            words.extend([word, sign]);
            rest = after;
        }
        words.push(rest);
        words.retain(|word| !word.trim().is_empty());
        Expression { words, at: 0 }
    }

    /// Returns true if somebody who accepts only these licences may use the crate.
    fn check(mut self, allowed: &[&str]) -> bool {
        self.alternatives(allowed) && self.at == self.words.len()
    }

    fn alternatives(&mut self, allowed: &[&str]) -> bool {
        let mut is_allowed = self.conjunction(allowed);
        while self.take("OR") || self.take("/") {
            is_allowed |= self.conjunction(allowed);
        }
        is_allowed
    }

    fn conjunction(&mut self, allowed: &[&str]) -> bool {
        let mut is_allowed = self.licence(allowed);
        while self.take("AND") {
            is_allowed &= self.licence(allowed);
        }
        is_allowed
    }

    fn licence(&mut self, allowed: &[&str]) -> bool {
        if self.take("(") {
            let is_allowed = self.alternatives(allowed);
            return self.take(")") && is_allowed;
        }
        let Some(id) = self.next() else { return false };
        if !self.take("WITH") {
            return allowed.contains(&id);
        }
        let Some(exception) = self.next() else { return false };
        allowed.contains(&format!("{id} WITH {exception}").as_str())
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }
}
