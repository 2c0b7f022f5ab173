//! codexec's own data files with a checksum in the first line: private to their owner, and replaced
//! atomically. A file that violates this is not read.

use std::{
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use nix::unistd::geteuid;
use sha2::{Digest as _, Sha256};

use crate::{FileStamp, private_files};

/// The reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SealedFileError {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is not a regular file that you own and only you can write")]
    Foreign,
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    #[error("it is damaged, or written by another version of codexec")]
    Damaged,
}

/// Reads the body of a file that [`write()`] wrote with this `title`; `None` if there is no file.
pub fn read(
    path: &Path,
    title: &str,
    max_bytes: u64,
) -> Result<Option<(String, FileStamp)>, SealedFileError> {
    let file = match private_files::open_to_read(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) if err.kind() == io::ErrorKind::InvalidData => {
            return Err(SealedFileError::Foreign);
        }
        Err(err) => return Err(err.into()),
    };
    let metadata = file.metadata()?;
    let is_ours = metadata.uid() == geteuid().as_raw()
        && metadata.mode() & 0o022 == 0
        && metadata.nlink() == 1;
    if !is_ours {
        return Err(SealedFileError::Foreign);
    }
    let mut text = String::new();
    let read = file.take(max_bytes + 1).read_to_string(&mut text);
    match read {
        Ok(length) if length as u64 > max_bytes => {
            return Err(SealedFileError::TooLong(max_bytes));
        }
        Ok(_) => {}
        Err(err) if err.kind() == io::ErrorKind::InvalidData => {
            return Err(SealedFileError::Damaged);
        }
        Err(err) => return Err(err.into()),
    }
    let (head, body) = text.split_once('\n').ok_or(SealedFileError::Damaged)?;
    if head != header(title, body) {
        return Err(SealedFileError::Damaged);
    }
    text.drain(..=head.len());
    Ok(Some((text, FileStamp::of(&metadata))))
}

/// Replaces the file atomically.
pub fn write(path: &Path, title: &str, body: &str) -> io::Result<FileStamp> {
    private_files::replace(path, format!("{}\n{body}", header(title, body)).as_bytes())
}

/// Renames an unusable file to `*.corrupt`, so that the user can still find it.
pub fn set_aside(path: &Path) -> io::Result<()> {
    std::fs::rename(path, path.with_added_extension("corrupt"))
}

fn header(title: &str, body: &str) -> String {
    format!("codexec {title} {}", hex(&Sha256::digest(body.as_bytes())))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
