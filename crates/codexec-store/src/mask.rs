//! Takes secrets of a known shape out of what is stored.
//!
//! A help against accidents, not a wall: code that wants to write a secret down can always spell it
//! so that nobody knows it. Every pass over a text is one pass, whatever the text is.

mod pem;
mod rules;

use std::borrow::Cow;

use codexec_types::GuestOutput;

/// A part of a text, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Secret {
    start: usize,
    end: usize,
    kind: &'static str,
}

/// The same text without what is a secret; borrowed if there is none in it.
pub fn mask(text: &str) -> Cow<'_, str> {
    let secrets = secrets(text);
    if secrets.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(without(text, &secrets)) }
}

/// The text, and which bytes of it went to standard error. Both streams are looked at together: a
/// secret may have been written to either.
pub(crate) fn mask_written(written: &GuestOutput) -> (String, Vec<(usize, usize)>) {
    let (text, errors) = (written.text(), written.errors());
    let secrets = secrets(text);
    if secrets.is_empty() {
        return (text.to_owned(), errors.to_vec());
    }
    let masked = without(text, &secrets);
    let mut moved = Moved { secrets: &secrets, lost: 0, gained: 0 };
    let mut kept = Vec::with_capacity(errors.len());
    for (start, end) in errors {
        let (start, end) = (moved.to(*start), moved.to(*end));
        if start < end {
            kept.push((start, end));
        }
    }
    (masked, kept)
}

/// In order, and none within another.
fn secrets(text: &str) -> Vec<Secret> {
    if !rules::may_have_any(text) {
        return Vec::new();
    }
    let mut found = rules::find(text);
    pem::find(text, &mut found);
    found.sort_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    let mut apart: Vec<Secret> = Vec::with_capacity(found.len());
    for secret in found {
        match apart.last_mut() {
            Some(last) if secret.start < last.end => last.end = last.end.max(secret.end),
            Some(_) | None => apart.push(secret),
        }
    }
    apart
}

fn without(text: &str, secrets: &[Secret]) -> String {
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

/// Has neither quotes nor backslashes, so that JSON stays JSON.
fn label(kind: &str) -> String {
    format!("[masked:{kind}]")
}

/// Where a place of the text is in the masked one. Asked in order.
struct Moved<'a> {
    secrets: &'a [Secret],
    lost: usize,
    gained: usize,
}

impl Moved<'_> {
    fn to(&mut self, place: usize) -> usize {
        while let Some((first, rest)) = self.secrets.split_first() {
            if first.end > place {
                break;
            }
            self.lost += first.end - first.start;
            self.gained += label(first.kind).len();
            self.secrets = rest;
        }
        // Within a secret: before it.
        let place = match self.secrets.first() {
            Some(secret) if secret.start < place => secret.start,
            Some(_) | None => place,
        };
        place - self.lost + self.gained
    }
}

#[cfg(test)]
mod tests;
