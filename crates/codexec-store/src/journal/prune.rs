//! Taking lines out of a log file.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use super::file::NO_LINK;
use crate::entry;

/// Whoever calls holds the folder's lock. Says whether the file is gone: nothing was left in it. A
/// reader sees the file before or after, never in between.
///
/// THREAT[LOG-1]: what is not a regular file is nobody's log, and is left alone.
pub(crate) fn without(folder: &Path, name: &str, ids: &HashSet<String>) -> io::Result<bool> {
    let path = folder.join(name);
    if !is_regular(&path) {
        return Ok(false);
    }
    let file = OpenOptions::new().read(true).custom_flags(NO_LINK).open(&path)?;
    let mut lines = BufReader::with_capacity(64 << 10, file);
    let unborn = folder.join(".pruned");
    let _ = fs::remove_file(&unborn);
    let kept = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unborn)?;
    let mut kept = BufWriter::with_capacity(64 << 10, kept);
    let (mut left, mut dropped) = (0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if execution_id(&line).is_some_and(|id| ids.contains(id)) {
            dropped += 1;
        } else {
            left += 1;
            kept.write_all(&line)?;
        }
    }
    let kept: File = kept.into_inner().map_err(io::IntoInnerError::into_error)?;
    if dropped == 0 {
        fs::remove_file(&unborn)?;
    } else if left == 0 {
        fs::remove_file(&unborn)?;
        fs::remove_file(&path)?;
    } else {
        kept.sync_data()?;
        fs::rename(&unborn, &path)?;
    }
    Ok(dropped > 0 && left == 0)
}

/// Of the name itself: a link to a regular file is none.
pub(crate) fn is_regular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

fn execution_id(line: &[u8]) -> Option<&str> {
    let beginning = entry::beginning("");
    let rest = line.strip_prefix(beginning.trim_end_matches('"').as_bytes())?;
    let rest = rest.strip_prefix(b"\"")?;
    let end = rest.iter().take(64).position(|byte| *byte == b'"')?;
    std::str::from_utf8(rest.get(..end)?).ok()
}
