//! Marks a server on disk whose last start took too long, so that no later process waits for it.

use std::{io, path::Path};

use codexec_files::sealed_files;

const TITLE: &str = "hung 1";
const MAX_BYTES: u64 = 64 << 10;

/// Creates or removes the mark beside the cache file.
pub(super) fn write(cache_file: &Path, identity: &str, is_hung: bool) -> io::Result<()> {
    let path = cache_file.with_extension("hung");
    if is_hung {
        return sealed_files::write(&path, TITLE, identity).map(drop);
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns true if the mark belongs to this server entry.
pub(super) fn is_marked(cache_file: &Path, identity: &str) -> bool {
    let path = cache_file.with_extension("hung");
    matches!(sealed_files::read(&path, TITLE, MAX_BYTES), Ok(Some((body, _))) if body == identity)
}
