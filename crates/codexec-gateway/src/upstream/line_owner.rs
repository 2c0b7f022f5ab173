//! Finds the request that a broken or oversized line belongs to.

use codexec_types::find_first_field;

/// The request that a line belongs to, as far as its beginning tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineOwner {
    /// The answer to our request with this id.
    Request(i64),
    /// A message of the server's own: a notification, a request, or an answer to no request of
    /// ours.
    Server,
    Unknown,
}

/// Reads the beginning of a line whose rest is missing or invalid.
pub(super) fn find_line_owner(head: &[u8]) -> LineOwner {
    match find_first_field(head, &["id", "method"]) {
        Some(("id", value)) => id_owner(value),
        Some(_) => LineOwner::Server,
        None => LineOwner::Unknown,
    }
}

fn id_owner(value: &[u8]) -> LineOwner {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_whole = value.get(digits).is_some_and(|byte| b",} \t".contains(byte));
    let number = value.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
    match number.and_then(|number| number.parse().ok()) {
        Some(id) if is_whole => LineOwner::Request(id),
        // Our ids are always numbers.
        Some(_) | None if value.is_empty() || digits == value.len() => LineOwner::Unknown,
        Some(_) | None => LineOwner::Server,
    }
}

#[cfg(test)]
mod tests;
