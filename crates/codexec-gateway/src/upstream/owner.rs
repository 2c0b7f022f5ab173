//! Finding out whose a line was that is not JSON.

/// Whose line it was, as far as its beginning tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The answer to our request with this id.
    Request(i64),
    /// Something of the server's own: a notification, a request, an answer to nobody.
    Server,
    Unknown,
}

/// Finds the `id` at the top level of a JSON object of which the rest is missing or broken.
pub(super) fn owner(head: &[u8]) -> Owner {
    let mut depth = 0_u32;
    let mut rest = head;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some((text, behind)) = split_string(behind) else { return Owner::Unknown };
                rest = behind.trim_ascii_start();
                let Some(value) = rest.strip_prefix(b":") else { continue };
                match text {
                    b"method" if depth == 1 => return Owner::Server,
                    b"id" if depth == 1 => return id_owner(value.trim_ascii_start()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Owner::Unknown
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

/// What stands before the closing quote, and what behind it.
fn split_string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut is_escaped = false;
    let end = text.iter().position(|&byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

#[cfg(test)]
mod tests;
