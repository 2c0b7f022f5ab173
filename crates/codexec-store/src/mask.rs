//! Masks secrets of known formats before a text is stored.
//!
//! Masking protects against accidents, not against code that encodes a secret on purpose. The time
//! is linear in the length of the text, whatever it contains.

mod pem;
mod rules;

use std::borrow::Cow;

use codexec_types::GuestOutput;

/// The range of a secret in a text, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SecretRange {
    start: usize,
    end: usize,
    kind: &'static str,
}

/// Replaces each secret in a text by a label. Returns a borrowed text if there is none.
pub fn mask(text: &str) -> Cow<'_, str> {
    let secrets = find_secrets(text);
    if secrets.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replace(text, &secrets)) }
}

/// Returns the masked text, and the ranges of it that went to stderr. Both streams are searched
/// together, because a secret may be split between them.
pub(crate) fn mask_written(written: &GuestOutput) -> (String, Vec<(usize, usize)>) {
    let (text, errors) = (written.text(), written.errors());
    let secrets = find_secrets(text);
    if secrets.is_empty() {
        return (text.to_owned(), errors.to_vec());
    }
    let masked = replace(text, &secrets);
    let mut offsets = OffsetMap { secrets: &secrets, removed: 0, added: 0 };
    let mut ranges = Vec::with_capacity(errors.len());
    for (start, end) in errors {
        let (start, end) = (offsets.map(*start), offsets.map(*end));
        if start < end {
            ranges.push((start, end));
        }
    }
    (masked, ranges)
}

/// Finds all secrets, in order and without overlaps.
fn find_secrets(text: &str) -> Vec<SecretRange> {
    if !rules::may_have_any(text) {
        return Vec::new();
    }
    let mut found = rules::find(text);
    pem::find(text, &mut found);
    found.sort_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    let mut merged: Vec<SecretRange> = Vec::with_capacity(found.len());
    for secret in found {
        match merged.last_mut() {
            Some(last) if secret.start < last.end => last.end = last.end.max(secret.end),
            Some(_) | None => merged.push(secret),
        }
    }
    merged
}

fn replace(text: &str, secrets: &[SecretRange]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for secret in secrets {
        masked.push_str(text.get(from..secret.start).unwrap_or_default());
        masked.push_str(&label(secret.kind));
        from = secret.end;
    }
    masked.push_str(text.get(from..).unwrap_or_default());
    masked
}

/// Returns the label of a secret. Without quotes and backslashes, so that JSON stays valid.
fn label(kind: &str) -> String {
    format!("[masked:{kind}]")
}

/// Maps offsets in the original text to the masked text. Offsets must be mapped in order.
struct OffsetMap<'a> {
    /// The secrets after the last mapped offset.
    secrets: &'a [SecretRange],
    /// Bytes of the secrets before it.
    removed: usize,
    /// Bytes of the labels before it.
    added: usize,
}

impl OffsetMap<'_> {
    fn map(&mut self, offset: usize) -> usize {
        while let Some((first, rest)) = self.secrets.split_first() {
            if first.end > offset {
                break;
            }
            self.removed += first.end - first.start;
            self.added += label(first.kind).len();
            self.secrets = rest;
        }
        // An offset inside a secret becomes the start of its label.
        let offset = match self.secrets.first() {
            Some(secret) if secret.start < offset => secret.start,
            Some(_) | None => offset,
        };
        offset - self.removed + self.added
    }
}

#[cfg(test)]
mod tests;
