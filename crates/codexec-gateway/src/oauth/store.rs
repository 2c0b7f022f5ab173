//! Stores logins: tokens in the desktop's keyring if there is one, else in
//! `$CODEXEC_HOME/tokens/NAME.json` with mode 0600.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use codexec_files::{FileLock, FileStamp, private_files};
use codexec_types::ServerName;
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

impl LoginStore {
    pub(super) fn new(home: &Path, server: &ServerName) -> LoginStore {
        // A `ServerName` is a safe file name.
        let path = home.join("tokens").join(format!("{server}.json"));
        LoginStore { path, account: format!("login-{server}") }
    }

    /// Returns the stamp of the file, or `None` if there is none. A login that the user has linked
    /// from elsewhere is read through the link, so its stamp is that of the link's target.
    pub(super) fn stamp(&self) -> Option<FileStamp> {
        std::fs::metadata(&self.path).ok().map(|metadata| FileStamp::of(&metadata))
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
        private_files::replace(&self.path, &serde_json::to_vec(login)?).map(drop)
    }

    /// Locks out other codexec processes that want to renew the same grant. Blocks the thread.
    pub(super) fn lock(&self) -> io::Result<FileLock> {
        FileLock::acquire(&self.path.with_extension("lock"))
    }
}

#[cfg(test)]
mod tests;
