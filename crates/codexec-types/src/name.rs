use std::fmt;

/// The name of an upstream: 1 to 64 of `A-Z a-z 0-9 _ -`. Anything else never gets in, so a
/// name can stand in a path, a pattern or a joined tool name.
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

/// A name as an identifier: `my-server` becomes `my_server`. Guests may use either.
pub fn alias(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().map(|c| if is_word(c) { c } else { '_' }).collect()
}

/// The names most like `wanted`, best first: for "did you mean".
pub fn nearest<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(usize, &str)> = names
        .map(|name| (distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= name.len().max(wanted.len()) / 2)
        .collect();
    scored.sort();
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

/// Levenshtein's, on bytes; a name that contains the other counts as close.
fn distance(a: &str, b: &str) -> usize {
    if !a.is_empty() && !b.is_empty() && (a.contains(b) || b.contains(a)) {
        return 1.min(a.len().abs_diff(b.len()));
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = replaced.min(*cell + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests;
