//! Files and folders that only their owner can access: mode 0600 and 0700.
//!
//! The last component of a path is never followed if it is a symlink. Code that walks a tree which
//! somebody else may change meanwhile (the script library, the files of guests) opens everything
//! relative to descriptors instead.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use nix::{errno::Errno, fcntl::OFlag};

use crate::FileStamp;

/// Flags against a symlink, or a pipe without a reader, in place of a file.
const FLAGS: i32 = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK).bits();

/// Makes the names of temporary files unique.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Creates the folder and its missing parents with mode 0700. Existing folders stay as they are.
#[expect(clippy::disallowed_methods, reason = "the one place that makes private folders")]
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a new file for writing. Fails if the path exists, even as a symlink.
pub fn create(path: &Path) -> io::Result<File> {
    private_options().write(true).create_new(true).open(path)
}

/// Replaces the file atomically and flushes it to disk first. Creates the folder if missing.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<FileStamp> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_folder(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let serial = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}.{}.{serial}.new", std::process::id()));
    // A dead process with the same pid may have left one behind.
    let _ = std::fs::remove_file(&temporary);
    let written = (|| {
        let mut file = create(&temporary)?;
        file.write_all(content)?;
        file.sync_data()?;
        std::fs::rename(&temporary, path)?;
        Ok(FileStamp::of(&file.metadata()?))
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Opens a regular file for reading. Anything else in its place is `InvalidData`.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open_regular(OpenOptions::new().read(true).custom_flags(FLAGS), path)
}

/// Opens a regular file for reading and appending, and creates it if missing. An existing file
/// loses the permissions of others. Anything else in its place is `InvalidData`.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let file = open_regular(private_options().read(true).append(true).create(true), path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Opens a regular file for writing from its start, and creates it if missing. The content stays.
pub fn open_to_write(path: &Path) -> io::Result<File> {
    open_regular(private_options().write(true).create(true).truncate(false), path)
}

#[expect(clippy::disallowed_methods, reason = "the one place that creates private files")]
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(FLAGS);
    options
}

fn open_regular(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let not_regular = || {
        let text = format!("{} is not a regular file", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(errno) if errno == Errno::ELOOP as i32 => not_regular(),
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

#[cfg(test)]
mod tests;
