use crate::ScriptError;

const MAX_NAME_BYTES: usize = 64;

/// Device names that Windows reserves. Without them a library can be copied there.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// A script's name, and the name of its folder (the slug).
///
/// THREAT[SCR-1]: a slug contains only `a-z 0-9 _ -` and starts with a letter or digit, so it is
/// never a path, an option, a hidden file, the index or the lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptName {
    pub(crate) name: String,
    pub(crate) slug: String,
}

impl ScriptName {
    pub(crate) fn parse(name: &str) -> Result<ScriptName, ScriptError> {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-. ".contains(&b);
        let is_first = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        let slug = to_slug(name);
        let is_valid = name.len() <= MAX_NAME_BYTES
            && name.bytes().all(is_allowed)
            && is_first(name.bytes().next())
            && !name.ends_with(['.', ' '])
            && !is_device(&slug);
        match is_valid {
            true => Ok(ScriptName { name: name.to_owned(), slug }),
            false => Err(ScriptError::Name { given: name.chars().take(80).collect() }),
        }
    }

    /// Returns true if a folder's name is a slug that we would use. Other folders are no scripts.
    pub(crate) fn is_slug(folder: &str) -> bool {
        ScriptName::parse(folder).is_ok_and(|name| name.slug == folder)
    }
}

/// Converts `Parse Report.v2` to `parse-report-v2`.
fn to_slug(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let parts = lower.split(['.', ' ']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-")
}

fn is_device(slug: &str) -> bool {
    let is_port = |rest: &str| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit());
    DEVICES.contains(&slug)
        || slug.strip_prefix("com").is_some_and(is_port)
        || slug.strip_prefix("lpt").is_some_and(is_port)
}

#[cfg(test)]
mod tests;
