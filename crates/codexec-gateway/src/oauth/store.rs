//! Where grants are kept: in the desktop's keyring if it has one, else in
//! `$CODEXEC_HOME/tokens/NAME.json`, for its owner alone.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use codexec_types::ServerName;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use url::Url;

use super::grant::Grant;
use crate::{Settings, keyring};

const MAX_BYTES: u64 = 256 << 10;

/// One server's file.
#[derive(Clone, Debug)]
pub(super) struct Store {
    path: PathBuf,
    /// Its name in the keyring.
    account: String,
}

/// What is in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    pub(super) grant: Option<Grant>,
    /// The grant is in the desktop's keyring instead.
    pub(super) is_in_keyring: bool,
    /// What the server refused for want of, for the next login to ask for.
    pub(super) wanted: Vec<String>,
    /// The server's last `WWW-Authenticate`, and the server.
    pub(super) challenge: Option<(Url, String)>,
}

/// Tells whether a file is still the one that was read.
pub(super) type Stamp = Option<(SystemTime, u64)>;

impl Store {
    pub(super) fn new(home: &Path, server: &ServerName) -> Store {
        // A server's name is safe as a file's.
        let path = home.join("tokens").join(format!("{server}.json"));
        Store { path, account: format!("login-{server}") }
    }

    pub(super) fn stamp(&self) -> Stamp {
        let metadata = std::fs::metadata(&self.path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    /// What cannot be read is not there: the user logs in again.
    pub(super) async fn load(&self, settings: &Settings) -> Kept {
        let mut kept = self.read();
        if kept.is_in_keyring {
            let found = keyring::lookup(&self.account, settings).await.ok();
            kept.grant = found.and_then(|found| serde_json::from_str(&found).ok());
        }
        kept
    }

    /// THREAT[REM-4]: nothing of a grant is in the file when the keyring has it.
    pub(super) async fn save(&self, mut kept: Kept, settings: &Settings) -> io::Result<Kept> {
        let whole = kept.clone();
        let secret = kept.grant.as_ref().and_then(|grant| serde_json::to_string(grant).ok());
        kept.is_in_keyring = match secret {
            Some(secret) => keyring::store(&self.account, &secret, settings).await.is_ok(),
            // It may be locked just now.
            None => kept.is_in_keyring,
        };
        let is_in_keyring = kept.is_in_keyring;
        if is_in_keyring {
            kept.grant = None;
        }
        self.write(&kept)?;
        Ok(Kept { is_in_keyring, ..whole })
    }

    fn read(&self) -> Kept {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(&self.path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(_) => Kept::default(),
        }
    }

    fn write(&self, kept: &Kept) -> io::Result<()> {
        let dir = self.dir()?;
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = dir.join(name);
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(nix::libc::O_NOFOLLOW);
        let written = (|| {
            let mut file = options.open(&new)?;
            file.write_all(&serde_json::to_vec(kept)?)?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written
    }

    /// Holds off every other process of ours that wants to renew the same grant.
    pub(super) fn lock(&self) -> io::Result<Flock<File>> {
        self.dir()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.path.with_extension("lock"))?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
    }

    fn dir(&self) -> io::Result<&Path> {
        let dir = self.path.parent().unwrap_or(&self.path);
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        Ok(dir)
    }
}

#[cfg(test)]
mod tests;
