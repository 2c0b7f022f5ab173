//! A server's stderr, logged for the user: bounded in size and private.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use codexec_files::{private_files, read_bytes};
use codexec_types::{ServerName, clean_text};

use crate::GatewaySettings;

/// At this size the log is rotated, and the previous rotated log is deleted.
const LOG_BYTES: u64 = 512 << 10;

pub(super) struct ServerLog {
    path: PathBuf,
    file: Option<(File, u64)>,
}

impl ServerLog {
    /// Opens no file before there is something to write.
    pub(super) fn new(settings: &GatewaySettings, name: &ServerName) -> Option<ServerLog> {
        Some(ServerLog { path: log_path(settings.home.as_deref()?, name), file: None })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut file, length) = match self.file.take() {
            Some(open) => open,
            None => self.open()?,
        };
        file.write_all(bytes)?;
        let length = length + u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length < LOG_BYTES {
            self.file = Some((file, length));
        } else {
            std::fs::rename(&self.path, rotated_path(&self.path))?;
        }
        Ok(())
    }

    fn open(&self) -> io::Result<(File, u64)> {
        if let Some(folder) = self.path.parent() {
            private_files::make_folder(folder)?;
        }
        let file = private_files::open_to_append(&self.path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    }
}

/// Appends to the log on a blocking thread. Returns the log, unless writing failed.
pub(super) async fn append(log: Option<ServerLog>, bytes: &[u8]) -> Option<ServerLog> {
    let mut log = log?;
    let bytes = bytes.to_vec();
    let written = tokio::task::spawn_blocking(move || {
        let written = log.write(&bytes);
        (written, log)
    });
    match written.await.ok()? {
        (Ok(()), log) => Some(log),
        (Err(error), log) => {
            tracing::warn!(%error, file = %log.path.display(), "cannot write a server's log");
            None
        }
    }
}

/// Returns the last lines of a server's log, without terminal control characters.
pub fn read_server_log(home: &Path, name: &ServerName, lines: usize) -> io::Result<String> {
    let path = log_path(home, name);
    let mut text = String::new();
    for path in [rotated_path(&path), path] {
        // The file may be written to meanwhile, and may contain any bytes.
        match read_bytes(&path, LOG_BYTES * 4) {
            Ok(part) => text.push_str(&String::from_utf8_lossy(&part)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let text = clean_text(&text);
    let all: Vec<&str> = text.lines().collect();
    let first = all.len().saturating_sub(lines);
    Ok(all.into_iter().skip(first).map(|line| format!("{line}\n")).collect())
}

/// A server name has no character that could lead to another folder.
fn log_path(home: &Path, name: &ServerName) -> PathBuf {
    home.join("logs/servers").join(format!("{name}.log"))
}

fn rotated_path(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

#[cfg(test)]
mod tests;
