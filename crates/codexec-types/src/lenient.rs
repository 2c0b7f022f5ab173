//! Reading what real peers send instead of JSON.

use std::borrow::Cow;

use serde_json::Value;

/// Reads one JSON value; invalid UTF-8 and lone surrogates become U+FFFD.
pub fn lenient_json(line: &[u8]) -> Result<Value, serde_json::Error> {
    let strict = match serde_json::from_slice(line) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let text = String::from_utf8_lossy(line);
    match (&text, replace_lone_surrogates(&text)) {
        (Cow::Borrowed(_), None) => Err(strict),
        (text, None) => serde_json::from_str(text),
        (_, Some(repaired)) => serde_json::from_str(&repaired),
    }
}

/// `None` when there is nothing to replace.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        at = match surrogate(text, escape) {
            None => escape + 2,
            Some(Half::High) if surrogate(text, escape + 6) == Some(Half::Low) => escape + 12,
            Some(Half::High | Half::Low) => {
                out.push_str(text.get(copied..escape)?);
                out.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
        };
        at = text.ceil_char_boundary(at.min(text.len()));
    }
    (copied > 0).then(|| {
        out.push_str(text.get(copied..).unwrap_or_default());
        out
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

fn surrogate(text: &str, at: usize) -> Option<Half> {
    let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
    match u16::from_str_radix(hex, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
