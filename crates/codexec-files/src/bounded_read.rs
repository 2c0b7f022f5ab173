//! Reads files that others wrote, which may be of any type and size.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Reads a regular file of at most `max_bytes` bytes as UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let bytes = read_bytes(path, max_bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Reads a regular file of at most `max_bytes` bytes.
///
/// THREAT[CFG-2]: rejects a pipe, device or endless file without blocking on it.
pub fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if about.len() > max_bytes {
        let bytes = about.len();
        return Err(io::Error::other(format!(
            "it has {bytes} bytes; at most {max_bytes} are read"
        )));
    }
    // The reported size may be wrong, as in `/proc`.
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > max_bytes) {
        return Err(io::Error::other(format!("it is longer than {max_bytes} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
