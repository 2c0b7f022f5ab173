//! The hash of a JSON value, which does not depend on the order of its keys. Approvals store it, to
//! notice when what was approved has changed.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::sealed_files::hex;

/// Returns the SHA-256 of a canonical form, in hex. Every field counts, including unknown ones.
pub fn hash_json(value: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(value, &mut hasher);
    hex(&hasher.finalize())
}

fn feed(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                feed(item, hasher);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            hasher.update(b"{");
            for (key, value) in sorted {
                feed_text(key, hasher);
                hasher.update(b":");
                feed(value, hasher);
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        Value::String(text) => feed_text(text, hasher),
        Value::Null | Value::Bool(_) | Value::Number(_) => hasher.update(value.to_string()),
    }
}

/// Hashes the length first, so that no string can imitate the bytes after it.
fn feed_text(text: &str, hasher: &mut Sha256) {
    hasher.update(b"\"");
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn up_4_every_field_counts_and_the_order_does_not() {
        let first = json!({"name": "a", "inputSchema": {"x": 1, "y": [1, 2]}});
        let reordered = json!({"inputSchema": {"y": [1, 2], "x": 1}, "name": "a"});
        assert_eq!(hash_json(&first), hash_json(&reordered));
        let others = [
            json!({"name": "b", "inputSchema": {"x": 1, "y": [1, 2]}}),
            json!({"name": "a", "inputSchema": {"x": 1, "y": [2, 1]}}),
            json!({"name": "a", "inputSchema": {"x": 1, "y": [1, [2]]}}),
            json!({"name": "a", "inputSchema": {"x": "1", "y": [1, 2]}}),
            json!({"name": "a", "inputSchema": {"x": 1, "y": [1, 2]}, "_meta": {}}),
            json!({"name": "a", "inputSchema": {"x": 1, "y": [1, 2]}, "new": null}),
            json!({"name": "a\u{200b}", "inputSchema": {"x": 1, "y": [1, 2]}}),
        ];
        let mut digests: Vec<String> = others.iter().map(hash_json).collect();
        digests.push(hash_json(&first));
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), others.len() + 1);
    }
}
