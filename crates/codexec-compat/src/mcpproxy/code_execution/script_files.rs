//! Scripts as MCPProxy stores them: `<name>.js` or `<name>.ts` in one of the user's folders.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use codexec_types::Language;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use super::NamedScript;
use super::refusal::CodeRefusal;

const MAX_NAME_CHARS: usize = 64;
const MAX_BYTES: u64 = 256 << 10;
/// Maximum number of entries that are read: the folder may have been chosen by mistake.
const MAX_ENTRIES: usize = 10_000;
const EXTENSIONS: [(&str, Language); 2] =
    [("js", Language::JavaScript), ("ts", Language::TypeScript)];

/// A script read from its file.
#[derive(Debug, PartialEq)]
pub(super) struct ScriptFile {
    pub(super) language: Language,
    pub(super) code: String,
}

/// One of the two files that a name can refer to.
enum ScriptLookup {
    Missing,
    /// Opened, but not checked yet.
    Opened(File),
    /// A symlink, which must not be followed.
    Symlink,
}

/// True for a valid script name. It is never a path: no dot, no slash.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_plain)
}

pub(super) fn check_name(name: &str) -> Result<(), CodeRefusal> {
    if is_name(name) {
        return Ok(());
    }
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    Err(CodeRefusal::new(
        "INVALID_SCRIPT_NAME",
        format!("script: {name:?} is not a name; use 1 to {MAX_NAME_CHARS} of A-Z a-z 0-9 _ -"),
    ))
}

/// Finds a script.
///
/// THREAT[SCR-2]: the name is checked, no symlink is followed, and the length is limited.
pub(super) fn find(folder: &Path, name: &str) -> Result<Option<ScriptFile>, CodeRefusal> {
    let unreadable = |errno: Errno| {
        CodeRefusal::unusable(format!("script {name:?}: its folder cannot be read: {errno}"))
    };
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_PATH;
    let folder = match open(folder, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::ENOENT) => return Ok(None),
        Err(errno) => return Err(unreadable(errno)),
    };
    let mut found = Vec::new();
    for (ending, language) in EXTENSIONS {
        match open_script(&folder, &format!("{name}.{ending}")).map_err(unreadable)? {
            ScriptLookup::Missing => {}
            ScriptLookup::Opened(file) => found.push((language, Some(file))),
            ScriptLookup::Symlink => found.push((language, None)),
        }
    }
    match (found.pop(), found.pop()) {
        (None, _) => Ok(None),
        (Some((language, file)), None) => {
            let problem =
                |problem: &str| CodeRefusal::unusable(format!("script {name:?}: {problem}"));
            let file = file.ok_or_else(|| problem("it is a link; put the file itself there"))?;
            let code = read(file).map_err(|error| problem(&error))?;
            Ok(Some(ScriptFile { language, code }))
        }
        (Some(_), Some(_)) => Err(CodeRefusal::unusable(format!(
            "script {name:?}: both {name}.js and {name}.ts are there, so it is ambiguous; remove \
             one"
        ))),
    }
}

/// Lists the scripts, without opening their files.
pub(super) fn list(folder: &Path, most: usize) -> Vec<NamedScript> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut found: Vec<NamedScript> = entries
        .take(MAX_ENTRIES)
        .flatten()
        // The type of the entry itself: symlinks are not followed.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            let file = entry.file_name();
            let (name, ending) = file.to_str()?.rsplit_once('.')?;
            let (_, language) = EXTENSIONS.into_iter().find(|(known, _)| *known == ending)?;
            is_name(name).then(|| NamedScript { name: name.to_owned(), language, is_file: true })
        })
        .collect();
    found.sort_by(|a, b| (&a.name, a.language.name()).cmp(&(&b.name, b.language.name())));
    found.truncate(most);
    found
}

fn open_script(folder: &OwnedFd, file: &str) -> Result<ScriptLookup, Errno> {
    // O_NONBLOCK: opening a FIFO or device must not block before its type is known.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    match openat(folder, file, flags, Mode::empty()) {
        Ok(file) => Ok(ScriptLookup::Opened(File::from(file))),
        Err(Errno::ENOENT) => Ok(ScriptLookup::Missing),
        Err(Errno::ELOOP) => Ok(ScriptLookup::Symlink),
        Err(errno) => Err(errno),
    }
}

fn read(file: File) -> Result<String, String> {
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    // One byte more than allowed, to detect longer files: a file may grow while it is read.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    match bytes.len() as u64 {
        0 => Err("it is empty".to_owned()),
        1..=MAX_BYTES => {
            String::from_utf8(bytes).map_err(|_| "it is not UTF-8; save it as UTF-8".to_owned())
        }
        _ => Err(format!("it has more than {MAX_BYTES} bytes")),
    }
}

#[cfg(test)]
mod tests;
