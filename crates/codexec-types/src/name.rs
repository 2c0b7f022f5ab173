use std::fmt;

/// The name of an upstream: 1 to 64 of `A-Z a-z 0-9 _ -`. So a name is safe in a path, a pattern or
/// a joined tool name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(String);

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("server name {0:?} is not allowed; use 1 to 64 of the characters A-Z a-z 0-9 _ -")]
pub struct InvalidServerName(pub String);

impl ServerName {
    pub fn new(text: &str) -> Result<ServerName, InvalidServerName> {
        let is_fine = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(is_fine) {
            Ok(ServerName(text.to_owned()))
        } else {
            let shown = text.chars().take(80).collect();
            Err(InvalidServerName(shown))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Turns a name into an identifier: `my-server` becomes `my_server`. Guests may use either.
pub fn to_identifier(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().map(|c| if is_word(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
