//! Where references within a schema lead. Nothing outside it is ever looked at.

use std::collections::HashMap;

use serde_json::{Map, Value};

const REFERENCE_BYTES: usize = 512;
const ANCHORS: usize = 1_000;

pub(super) struct References<'a> {
    root: &'a Value,
    /// What the schema calls itself, before `#`.
    own: &'a str,
    anchors: HashMap<&'a str, &'a Value>,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> References<'a> {
        let own = root.get("$id").and_then(Value::as_str).unwrap_or_default();
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
        References { root, own: own.trim_end_matches('#'), anchors }
    }

    /// The reference that a schema consists of.
    pub(super) fn of(schema: &'a Map<String, Value>) -> Option<&'a str> {
        let keys = ["$ref", "$dynamicRef", "$recursiveRef"];
        keys.iter().find_map(|key| schema.get(*key)?.as_str())
    }

    pub(super) fn find(&self, to: &str) -> Option<&'a Value> {
        if to.len() > REFERENCE_BYTES {
            return None;
        }
        let inside = match to.strip_prefix(self.own) {
            Some(inside) if inside.starts_with('#') => inside,
            _ => to,
        };
        let Some(fragment) = inside.strip_prefix('#') else { return self.anchors.get(to).copied() };
        if fragment.is_empty() {
            return Some(self.root);
        }
        let fragment = unescaped(fragment);
        match fragment.starts_with('/') {
            true => self.root.pointer(&fragment),
            false => self.anchors.get(fragment.as_str()).copied(),
        }
    }
}

/// With `%20` and the like as the characters they stand for.
fn unescaped(text: &str) -> String {
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
