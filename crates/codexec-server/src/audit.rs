//! An audit log of executions and discoveries, as JSON lines. The store has all of it as well, so a
//! line that cannot be written fails nothing.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::OFlag;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::App;

/// Longer lines are left out.
const MAX_LINE_BYTES: usize = 256 << 10;
/// A longer file is rotated.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Timeout for a slow disk.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serializes writers, so that lines are in order and a file is rotated once.
pub(crate) struct AuditWriter(Arc<Semaphore>);

impl Default for AuditWriter {
    fn default() -> AuditWriter {
        AuditWriter(Arc::new(Semaphore::new(1)))
    }
}

impl App {
    /// Appends one line, if the settings name a file.
    pub(crate) async fn audit(&self, line: &Value) {
        let Some(path) = self.seeds.executor.audit_log.clone() else { return };
        let mut line = line.to_string();
        line.push('\n');
        let writing = self.audit_writer.append(path, line);
        let written = match tokio::time::timeout(WRITE_TIMEOUT, writing).await {
            Ok(written) => written,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "a line of the audit log was not written");
        }
    }
}

impl AuditWriter {
    async fn append(&self, path: PathBuf, line: String) -> io::Result<()> {
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(io::Error::other)?;
        let write = move || {
            let _permit = permit;
            append(&path, &line)
        };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    if line.len() > MAX_LINE_BYTES {
        return Err(io::Error::other(format!("the line is longer than {MAX_LINE_BYTES} bytes")));
    }
    let mut file = open(path)?;
    if file.metadata()?.len() + line.len() as u64 > MAX_FILE_BYTES {
        std::fs::rename(path, rotated_path(path))?;
        file = open(path)?;
    }
    // One write: another server may append to the same file.
    file.write_all(line.as_bytes())
}

/// Opens the log with mode 0600. A symlink is not followed, because whoever creates it chooses the
/// file.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // O_NONBLOCK: opening a FIFO or device must not block before its type is known.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file =
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if about.permissions().mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Returns the path of the rotated file. There is only one.
fn rotated_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests;
