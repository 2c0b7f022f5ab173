//! Removes lines from a log file.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, BufRead as _, BufReader, BufWriter, Write as _},
    path::Path,
};

use codexec_files::private_files;

use crate::log_line;

/// Removes the lines of these executions. The caller holds the folder's lock. Returns true if no
/// line was left and the file was removed. The change is atomic for readers.
///
/// THREAT[LOG-1]: anything but a regular file is not our log, and is left alone.
pub(crate) fn remove_lines(folder: &Path, name: &str, ids: &HashSet<String>) -> io::Result<bool> {
    let path = folder.join(name);
    if !is_regular_file(&path) {
        return Ok(false);
    }
    let file = private_files::open_to_read(&path)?;
    let mut lines = BufReader::with_capacity(64 << 10, file);
    let temporary = folder.join(".pruned");
    let _ = fs::remove_file(&temporary);
    let rest = private_files::create(&temporary)?;
    let mut rest = BufWriter::with_capacity(64 << 10, rest);
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
            rest.write_all(&line)?;
        }
    }
    let rest: File = rest.into_inner().map_err(io::IntoInnerError::into_error)?;
    if dropped == 0 {
        fs::remove_file(&temporary)?;
    } else if left == 0 {
        fs::remove_file(&temporary)?;
        fs::remove_file(&path)?;
    } else {
        rest.sync_data()?;
        fs::rename(&temporary, &path)?;
    }
    Ok(dropped > 0 && left == 0)
}

/// Returns true for a regular file, and false for a symlink to one.
pub(crate) fn is_regular_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

fn execution_id(line: &[u8]) -> Option<&str> {
    let prefix = log_line::prefix("");
    let rest = line.strip_prefix(prefix.trim_end_matches('"').as_bytes())?;
    let rest = rest.strip_prefix(b"\"")?;
    let end = rest.iter().take(64).position(|byte| *byte == b'"')?;
    std::str::from_utf8(rest.get(..end)?).ok()
}
