//! The rules for search words.

use codexec_types::{Ask, CallCode, CallError};

pub(super) const MAX_CHARS: usize = 100;
pub(super) const MAX_WORDS: usize = 100;

pub(super) fn check(ask: &Ask) -> Result<(), CallError> {
    match ask {
        Ask::Discover { words } if words.len() > MAX_WORDS => Err(invalid_args(format!(
            "Too many search words: there are {}; at most {MAX_WORDS} are allowed",
            words.len()
        ))),
        Ask::Discover { words } => words.iter().try_for_each(|word| check_text(word)),
        Ask::Search { query, .. } => check_text(query),
        _ => Ok(()),
    }
}

fn check_text(text: &str) -> Result<(), CallError> {
    let chars = text.chars().count();
    if chars > MAX_CHARS {
        return Err(invalid_args(format!(
            "Search query too long: it has {chars} characters; at most {MAX_CHARS} are allowed"
        )));
    }
    let is_allowed =
        |c: &char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || matches!(c, '_' | '-');
    match text.chars().find(|c| !is_allowed(c)) {
        None => Ok(()),
        Some(c) => Err(invalid_args(format!(
            "Invalid characters in search query: {c:?}; allowed are letters and digits of ASCII, \
             spaces, `_` and `-`"
        ))),
    }
}

fn invalid_args(message: String) -> CallError {
    CallError::new(CallCode::InvalidArgs, message)
}

#[cfg(test)]
mod tests;
