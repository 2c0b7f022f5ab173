//! An audit log of executions, discoveries and calls, as JSON lines in a file for each day. The
//! store has all of it as well, so a line that cannot be written fails nothing.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use codexec_files::private_files;
use codexec_types::format_rfc3339;
use serde_json::Value;
use tokio::sync::Semaphore;

/// Longer lines are left out.
const MAX_LINE_BYTES: usize = 256 << 10;
/// A longer file is rotated.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Timeout for a slow disk.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// The audit log. Writers wait for each other, so that lines are in order and a file is rotated
/// once.
pub(super) struct AuditLog {
    /// The configured path. The daily files are beside it.
    path: PathBuf,
    writer: Arc<Semaphore>,
}

impl AuditLog {
    pub(super) fn new(path: PathBuf) -> AuditLog {
        AuditLog { path, writer: Arc::new(Semaphore::new(1)) }
    }

    /// Appends one line.
    pub(super) async fn append(&self, line: &Value) {
        let mut line = line.to_string();
        line.push('\n');
        let written = match tokio::time::timeout(WRITE_TIMEOUT, self.write(line)).await {
            Ok(written) => written,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "a line of the audit log was not written");
        }
    }

    async fn write(&self, line: String) -> io::Result<()> {
        let permit = Arc::clone(&self.writer).acquire_owned().await.map_err(io::Error::other)?;
        let path = daily_path(&self.path, SystemTime::now());
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

/// Returns the path of a day's file, beside the configured one. Days are in UTC, like all times in
/// the file.
fn daily_path(configured: &Path, now: SystemTime) -> PathBuf {
    let time = format_rfc3339(now);
    let day = time.split('T').next().unwrap_or_default();
    configured.with_file_name(format!("audit-{day}.jsonl"))
}

/// Opens the log with mode 0600. A symlink is not followed, because whoever creates it chooses the
/// file.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        private_files::make_folder(folder)?;
    }
    private_files::open_to_append(path)
}

/// Returns the path of the rotated file. There is only one.
fn rotated_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests;
