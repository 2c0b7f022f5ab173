//! Finding out whose a line was that is not JSON.

use codexec_types::first_field;

/// Whose line it was, as far as its beginning tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The answer to our request with this id.
    Request(i64),
    /// Something of the server's own: a notification, a request, an answer to nobody.
    Server,
    Unknown,
}

/// Looks at the beginning of a line of which the rest is missing or broken.
pub(super) fn owner(head: &[u8]) -> Owner {
    match first_field(head, &["id", "method"]) {
        Some(("id", value)) => id_owner(value),
        Some(_) => Owner::Server,
        None => Owner::Unknown,
    }
}

fn id_owner(value: &[u8]) -> Owner {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_whole = value.get(digits).is_some_and(|byte| b",} \t".contains(byte));
    let number = value.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
    match number.and_then(|number| number.parse().ok()) {
        Some(id) if is_whole => Owner::Request(id),
        // We never send an id that is not a number.
        Some(_) | None if value.is_empty() || digits == value.len() => Owner::Unknown,
        Some(_) | None => Owner::Server,
    }
}

#[cfg(test)]
mod tests;
