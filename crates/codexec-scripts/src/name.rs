use crate::ScriptError;

const MAX_NAME_BYTES: usize = 64;

/// Names that some systems keep for devices, so that a library can be copied there.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// A script's name as it was given, and the name of its folder.
///
/// THREAT[SCR-1]: a folder's name has only `a-z 0-9 _ -` in it and begins with a letter or digit,
/// so it is never a path, an option, a hidden file, the index or the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptName {
    pub(crate) name: String,
    pub(crate) slug: String,
}

impl ScriptName {
    pub(crate) fn parse(name: &str) -> Result<ScriptName, ScriptError> {
        let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"_-. ".contains(&b);
        let is_edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        let slug = slug(name);
        let is_name = name.len() <= MAX_NAME_BYTES
            && name.bytes().all(is_fine)
            && is_edge(name.bytes().next())
            && !name.ends_with(['.', ' '])
            && !is_device(&slug);
        match is_name {
            true => Ok(ScriptName { name: name.to_owned(), slug }),
            false => Err(ScriptError::Name { given: name.chars().take(80).collect() }),
        }
    }

    /// A folder that somebody has made is a script's only if it is named as we would name it.
    pub(crate) fn is_slug(folder: &str) -> bool {
        ScriptName::parse(folder).is_ok_and(|name| name.slug == folder)
    }
}

/// `Parse Report.v2` as `parse-report-v2`.
fn slug(name: &str) -> String {
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
