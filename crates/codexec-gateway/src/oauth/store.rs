//! Stores logins: tokens in the desktop's keyring if there is one, else in
//! `$CODEXEC_HOME/tokens/NAME.json` with mode 0600.

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

use super::grant::TokenGrant;
use crate::{GatewaySettings, keyring};

const MAX_BYTES: u64 = 256 << 10;

/// The store of one server's login.
#[derive(Clone, Debug)]
pub(super) struct LoginStore {
    path: PathBuf,
    /// The name of the keyring item.
    account: String,
}

/// The stored state of one server's login.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StoredLogin {
    pub(super) grant: Option<TokenGrant>,
    /// The grant is in the desktop's keyring instead.
    pub(super) is_in_keyring: bool,
    /// Scopes that the server found missing; the next login requests them.
    pub(super) wanted: Vec<String>,
    /// The server's URL and its last `WWW-Authenticate` header.
    pub(super) challenge: Option<(Url, String)>,
}

/// Modification time and size of a file, to detect that it was replaced.
pub(super) type ModifiedStamp = Option<(SystemTime, u64)>;

impl LoginStore {
    pub(super) fn new(home: &Path, server: &ServerName) -> LoginStore {
        // A `ServerName` is a safe file name.
        let path = home.join("tokens").join(format!("{server}.json"));
        LoginStore { path, account: format!("login-{server}") }
    }

    pub(super) fn stamp(&self) -> ModifiedStamp {
        let metadata = std::fs::metadata(&self.path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    /// Loads the login. An unreadable login counts as missing: the user logs in again.
    pub(super) async fn load(&self, settings: &GatewaySettings) -> StoredLogin {
        let mut login = self.read();
        if login.is_in_keyring {
            let found = keyring::lookup(&self.account, settings).await.ok();
            login.grant = found.and_then(|found| serde_json::from_str(&found).ok());
        }
        login
    }

    /// THREAT[REM-4]: the file contains nothing of a grant that is in the keyring.
    pub(super) async fn save(
        &self,
        mut login: StoredLogin,
        settings: &GatewaySettings,
    ) -> io::Result<StoredLogin> {
        let whole = login.clone();
        let secret = login.grant.as_ref().and_then(|grant| serde_json::to_string(grant).ok());
        login.is_in_keyring = match secret {
            Some(secret) => keyring::store(&self.account, &secret, settings).await.is_ok(),
            // No grant was loaded: the keyring may be locked.
            None => login.is_in_keyring,
        };
        let is_in_keyring = login.is_in_keyring;
        if is_in_keyring {
            login.grant = None;
        }
        self.write(&login)?;
        Ok(StoredLogin { is_in_keyring, ..whole })
    }

    fn read(&self) -> StoredLogin {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(&self.path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(_) => StoredLogin::default(),
        }
    }

    fn write(&self, login: &StoredLogin) -> io::Result<()> {
        let dir = self.make_dir()?;
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
            file.write_all(&serde_json::to_vec(login)?)?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written
    }

    /// Locks out other codexec processes that want to renew the same grant. Blocks the thread.
    pub(super) fn lock(&self) -> io::Result<Flock<File>> {
        self.make_dir()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.path.with_extension("lock"))?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
    }

    fn make_dir(&self) -> io::Result<&Path> {
        let dir = self.path.parent().unwrap_or(&self.path);
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        Ok(dir)
    }
}

#[cfg(test)]
mod tests;
