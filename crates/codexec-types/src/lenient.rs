//! Parsing of almost-JSON that real peers send.

use std::borrow::Cow;

use serde_json::Value;

/// Parses one JSON value; invalid UTF-8 and lone surrogates become U+FFFD.
pub fn parse_lenient_json(line: &[u8]) -> Result<Value, serde_json::Error> {
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

/// Finds the first of these fields at the top level of a JSON object that may be truncated or
/// broken. Returns the field's name and the text after its colon.
pub fn find_first_field<'a>(object: &'a [u8], names: &[&str]) -> Option<(&'a str, &'a [u8])> {
    let mut depth = 0_u32;
    let mut rest = object;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let (text, behind) = split_string(behind)?;
                rest = behind.trim_ascii_start();
                let Some(value) = rest.strip_prefix(b":") else { continue };
                let name = std::str::from_utf8(text).ok().filter(|name| names.contains(name));
                if let (1, Some(name)) = (depth, name) {
                    return Some((name, value.trim_ascii_start()));
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits at the closing quote and removes it.
fn split_string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut is_escaped = false;
    let end = text.iter().position(|&byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

/// Returns `None` if there is nothing to replace.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        at = match surrogate_at(text, escape) {
            None => escape + 2,
            Some(SurrogateHalf::High)
                if surrogate_at(text, escape + 6) == Some(SurrogateHalf::Low) =>
            {
                escape + 12
            }
            Some(SurrogateHalf::High | SurrogateHalf::Low) => {
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
enum SurrogateHalf {
    High,
    Low,
}

fn surrogate_at(text: &str, at: usize) -> Option<SurrogateHalf> {
    let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
    match u16::from_str_radix(hex, 16).ok()? {
        0xd800..=0xdbff => Some(SurrogateHalf::High),
        0xdc00..=0xdfff => Some(SurrogateHalf::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
