//! The file of one server's observations.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use codexec_files::private_files;
use codexec_types::ServerName;

use super::{MAX_TOOLS, ToolOutput};

const FILE_BYTES: u64 = 1 << 20;

type Tools = BTreeMap<String, ToolOutput>;

/// Reads the file; returns nothing if it is missing or invalid.
pub(super) fn read(folder: &Path, server: &ServerName) -> Tools {
    let text = || -> io::Result<String> {
        let mut text = String::new();
        File::open(path(folder, server))?.take(FILE_BYTES).read_to_string(&mut text)?;
        Ok(text)
    };
    let mut tools: Tools =
        text().ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    tools.retain(|_, known| known.seen.is_valid());
    tools
}

/// Replaces the file atomically. Keeps what another codexec process has observed of other tools.
pub(super) fn write(folder: &Path, server: &ServerName, mut tools: Tools) -> io::Result<()> {
    for (name, known) in read(folder, server) {
        if tools.len() < MAX_TOOLS {
            tools.entry(name).or_insert(known);
        }
    }
    let text = serde_json::to_string(&tools).map_err(io::Error::other)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    private_files::replace(&path(folder, server), text.as_bytes()).map(drop)
}

fn path(folder: &Path, server: &ServerName) -> PathBuf {
    folder.join(format!("{server}.json"))
}
