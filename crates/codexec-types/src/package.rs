//! Names of packages, in a subset of the grammars of pip and npm.
//!
//! THREAT[SCR-4]: text that an installer would read as an option, a path, a URL or an archive is
//! not accepted as a name.

use crate::Language;

/// Neither index has longer names.
const MAX_NAME_BYTES: usize = 128;
const MAX_VERSION_BYTES: usize = 64;
const MAX_CONSTRAINTS: usize = 8;
const MAX_EXTRAS: usize = 8;

/// File extensions that make an installer read its argument as a file instead of a name.
const ARCHIVES: [&str; 12] = [
    ".whl",
    ".zip",
    ".tar",
    ".tgz",
    ".tar.gz",
    ".tbz",
    ".tar.bz2",
    ".txz",
    ".tar.xz",
    ".tlz",
    ".tar.lz",
    ".tar.lzma",
];

/// A requested package with its version constraint: `pandas`, `pandas==2.2.1`,
/// `uvicorn[standard]>=0.30,<1`, `lodash@4`, `@scope/name@^1.2.3`. An installer gets it as one
/// argument and always reads it as a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PackageName {
    language: Language,
    text: String,
    name_bytes: usize,
    version_at: usize,
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum InvalidPackage {
    #[error("{0} code has no packages of its own; packages are for python and node")]
    NoneFor(Language),
    #[error(
        "{text:?} is not the name of a pip package; write name, name[extra] or name==1.2.3 (also \
         >=, <=, >, <, !=, ~=, joined by commas) without spaces; options, paths and addresses are \
         not allowed"
    )]
    Pip { text: String },
    #[error(
        "{text:?} is not the name of an npm package; write name, @scope/name or name@1.2.3 (also \
         ^, ~, >=, <=, >, < and a tag) in lower case without spaces; options, paths and addresses \
         are not allowed"
    )]
    Npm { text: String },
}

impl PackageName {
    pub fn parse(language: Language, text: &str) -> Result<PackageName, InvalidPackage> {
        let shown = || text.chars().take(80).collect::<String>();
        let made = |(name_bytes, version_at)| PackageName {
            language,
            text: text.to_owned(),
            name_bytes,
            version_at,
        };
        match language {
            Language::Python => {
                parse_pip(text).map(made).ok_or_else(|| InvalidPackage::Pip { text: shown() })
            }
            Language::Node => {
                parse_npm(text).map(made).ok_or_else(|| InvalidPackage::Npm { text: shown() })
            }
            Language::JavaScript | Language::TypeScript | Language::Bash => {
                Err(InvalidPackage::NoneFor(language))
            }
        }
    }

    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the text as it was written: one argument for the installer.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the name without extras and version.
    pub fn name(&self) -> &str {
        self.text.get(..self.name_bytes).unwrap_or_default()
    }

    /// Returns the version constraint as it was written: `==2.2.1`, `>=2,<3`, and for npm the part
    /// after the `@`.
    pub fn version(&self) -> Option<&str> {
        self.text.get(self.version_at..).filter(|version| !version.is_empty())
    }

    /// Returns a key that is equal for all spellings of one package: to pip, `My.Pkg` and `my-pkg`
    /// are the same.
    pub fn key(&self) -> String {
        if self.language != Language::Python {
            return self.name().to_owned();
        }
        let parts = self.name().split(['-', '_', '.']).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
    }
}

/// Returns the length of the name and the offset of the version.
fn parse_pip(text: &str) -> Option<(usize, usize)> {
    let name_bytes = text.find(['[', '=', '!', '<', '>', '~']).unwrap_or(text.len());
    let (name, rest) = text.split_at(name_bytes);
    let rest = match rest.strip_prefix('[') {
        Some(bracketed) => {
            let (extras, rest) = bracketed.split_once(']')?;
            let are_names = extras.split(',').all(is_pip_name);
            (are_names && extras.split(',').count() <= MAX_EXTRAS).then_some(rest)?
        }
        None => rest,
    };
    let is_fine =
        is_pip_name(name) && !is_archive(name) && (rest.is_empty() || are_pip_constraints(rest));
    is_fine.then_some((name_bytes, text.len() - rest.len()))
}

fn is_pip_name(text: &str) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let is_edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= MAX_NAME_BYTES
        && text.bytes().all(is_fine)
        && is_edge(text.bytes().next())
        && is_edge(text.bytes().next_back())
}

fn are_pip_constraints(text: &str) -> bool {
    text.split(',').count() <= MAX_CONSTRAINTS && text.split(',').all(is_pip_constraint)
}

fn is_pip_constraint(text: &str) -> bool {
    let operators = ["==", "!=", "~=", ">=", "<=", ">", "<"];
    let Some((operator, version)) =
        operators.iter().find_map(|op| Some((*op, text.strip_prefix(op)?)))
    else {
        return false;
    };
    let version = match version.strip_suffix(".*") {
        Some(prefix) if operator == "==" || operator == "!=" => prefix,
        _ => version,
    };
    is_version(version, b".+!_-") && !is_archive(version)
}

/// Returns the length of the name and the offset of the version.
fn parse_npm(text: &str) -> Option<(usize, usize)> {
    let (scoped, unscoped) = match text.strip_prefix('@') {
        Some(scoped) => {
            let (scope, rest) = scoped.split_once('/')?;
            is_npm_part(scope).then_some((text.len() - rest.len(), rest))?
        }
        None => (0, text),
    };
    let (name, version) = match unscoped.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (unscoped, None),
    };
    let name_bytes = scoped + name.len();
    let is_reserved = ["node_modules", "favicon.ico"].contains(&name);
    let is_fine = is_npm_part(name)
        && !is_reserved
        && !is_archive(name)
        && name_bytes <= MAX_NAME_BYTES
        && version.is_none_or(is_npm_version);
    is_fine
        .then_some((name_bytes, version.map_or(text.len(), |version| text.len() - version.len())))
}

fn is_npm_part(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= MAX_NAME_BYTES
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|b| is_plain(b) || b"._-".contains(&b))
}

fn is_npm_version(text: &str) -> bool {
    let operators = ["^", "~", ">=", "<=", ">", "<", "="];
    let version = operators.iter().find_map(|op| text.strip_prefix(op)).unwrap_or(text);
    is_version(version, b".+-") && !is_archive(version)
}

fn is_version(text: &str, marks: &[u8]) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || marks.contains(&b);
    text.len() <= MAX_VERSION_BYTES
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && text.bytes().all(is_fine)
}

fn is_archive(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ARCHIVES.iter().any(|ending| lower.ends_with(ending))
}

#[cfg(test)]
mod tests;
