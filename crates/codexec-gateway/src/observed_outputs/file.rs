//! The file of one server's observations.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

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
    static NEXT: AtomicU64 = AtomicU64::new(0);
    for (name, known) in read(folder, server) {
        if tools.len() < MAX_TOOLS {
            tools.entry(name).or_insert(known);
        }
    }
    let text = serde_json::to_string(&tools).map_err(io::Error::other)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = folder.join(format!(
        ".{server}.{}.{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path(folder, server)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn path(folder: &Path, server: &ServerName) -> PathBuf {
    folder.join(format!("{server}.json"))
}
