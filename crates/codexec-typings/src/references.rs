//! Resolves references within a schema. References to anything outside are never followed.

use std::collections::HashMap;

use serde_json::{Map, Value};

const REFERENCE_BYTES: usize = 512;
const ANCHORS: usize = 1_000;

/// The targets of references within one schema.
pub(super) struct References<'a> {
    root: &'a Value,
    /// The schema's own `$id`, without `#`.
    base: &'a str,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> References<'a> {
        let base = root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let sections =
            ["$defs", "definitions"].iter().filter_map(|key| root.get(*key)?.as_object());
        let mut anchors = HashMap::new();
        for schema in sections.flat_map(Map::values).take(ANCHORS) {
            let names =
                ["$anchor", "$dynamicAnchor", "$id"].iter().filter_map(|key| schema.get(*key));
            for name in names.filter_map(Value::as_str) {
                anchors.entry(name.trim_start_matches('#')).or_insert(schema);
            }
        }
        References { root, base: base.trim_end_matches('#'), anchors }
    }

    /// Returns the reference in a schema, if it has one.
    pub(super) fn target_of(schema: &'a Map<String, Value>) -> Option<&'a str> {
        let keys = ["$ref", "$dynamicRef", "$recursiveRef"];
        keys.iter().find_map(|key| schema.get(*key)?.as_str())
    }

    pub(super) fn find(&self, to: &str) -> Option<&'a Value> {
        if to.len() > REFERENCE_BYTES {
            return None;
        }
        let inside = match to.strip_prefix(self.base) {
            Some(inside) if inside.starts_with('#') => inside,
            _ => to,
        };
        let Some(fragment) = inside.strip_prefix('#') else { return self.anchors.get(to).copied() };
        if fragment.is_empty() {
            return Some(self.root);
        }
        let fragment = percent_decode(fragment);
        match fragment.starts_with('/') {
            true => self.root.pointer(&fragment),
            false => self.anchors.get(fragment.as_str()).copied(),
        }
    }
}

/// Decodes percent-encoding such as `%20`.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *byte == b'%') {
            Some(escaped) => {
                bytes.push(escaped);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
