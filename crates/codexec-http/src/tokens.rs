//! Tokens: the first one in a file of its own, named ones hashed in another.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use codexec_files::sealed_files::{self, SealedFileError};
use codexec_files::{FileLock, FileStamp, private_files};
use codexec_server::{InvalidScope, TokenScope};
use codexec_types::{TokenName, from_unix_ms, unix_ms};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The name of the token that is made at the first start.
pub const FIRST_TOKEN: &str = "first";
const TITLE: &str = "codexec tokens 1";
const MAX_BYTES: u64 = 4 << 20;
const MAX_TOKENS: usize = 1_000;
/// Shorter tokens could be guessed.
const MIN_TOKEN_CHARS: usize = 32;
const PREFIX: &str = "cxt_";

/// The tokens in the state directory. Several processes may use them at once.
#[derive(Clone, Debug)]
pub struct TokenFile {
    home: PathBuf,
}

/// A token as it is kept: everything but the token itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenRecord {
    pub name: TokenName,
    pub scopes: Vec<String>,
    pub created: SystemTime,
    pub expires: Option<SystemTime>,
    hash: [u8; 32],
}

/// A record as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    name: String,
    sha256: String,
    scopes: Vec<String>,
    created_ms: i64,
    expires_ms: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{0:?} is no name for a token; write 1 to 64 of A-Z a-z 0-9 _ . -")]
    Name(String),
    #[error("there is already a token {0:?}; revoke it first, or choose another name")]
    Taken(String),
    #[error("there is no token {0:?}; `codexec token list` shows all")]
    Unknown(String),
    #[error("the first token is the file {}; delete the file, and the next start makes a new one", .0.display())]
    First(PathBuf),
    #[error("there are {MAX_TOKENS} tokens already; revoke some")]
    TooMany,
    #[error(transparent)]
    Scope(#[from] InvalidScope),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    File(PathBuf, SealedFileError),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    #[error("{} must have mode 0600: others can read it", .0.display())]
    Exposed(PathBuf),
    #[error("{} must be one line of at least {MIN_TOKEN_CHARS} characters", .0.display())]
    Malformed(PathBuf),
    #[error("the operating system returned no random numbers")]
    NoRandomness,
}

impl TokenFile {
    pub fn at(home: &Path) -> TokenFile {
        TokenFile { home: home.to_owned() }
    }

    /// Returns the path of the first token.
    pub fn first_path(&self) -> PathBuf {
        self.home.join("http-token")
    }

    fn list_path(&self) -> PathBuf {
        self.home.join("http-tokens")
    }

    fn lock(&self) -> Result<FileLock, TokenError> {
        let path = self.home.join("http-tokens.lock");
        FileLock::acquire(&path).map_err(|error| TokenError::Io(path, error))
    }

    /// Makes the first token if there is none.
    pub fn ensure_first(&self) -> Result<(), TokenError> {
        let _lock = self.lock()?;
        let path = self.first_path();
        if std::fs::symlink_metadata(&path).is_ok() {
            return self.read_first().map(drop);
        }
        let line = format!("{}\n", make_token()?);
        let written = private_files::replace(&path, line.as_bytes());
        written.map(drop).map_err(|error| TokenError::Io(path, error))
    }

    fn read_first(&self) -> Result<TokenRecord, TokenError> {
        let path = self.first_path();
        let io_error = |error| TokenError::Io(path.clone(), error);
        let file = private_files::open_to_read(&path).map_err(io_error)?;
        let metadata = file.metadata().map_err(io_error)?;
        // THREAT[HTTP-1]: a token that others can read is no secret.
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(TokenError::Exposed(path));
        }
        let text = io::read_to_string(io::Read::take(file, 4_096)).map_err(io_error)?;
        let token = text.trim_end_matches('\n');
        let is_token =
            token.len() >= MIN_TOKEN_CHARS && token.bytes().all(|b| b.is_ascii_graphic());
        if !is_token {
            return Err(TokenError::Malformed(path));
        }
        let name = TokenName::new(FIRST_TOKEN).ok_or(TokenError::NoRandomness)?;
        let created = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let scopes = vec!["write".to_owned(), "everyone".to_owned()];
        Ok(TokenRecord { name, scopes, created, expires: None, hash: hash(token) })
    }

    /// Makes a named token, and returns it. It is not kept anywhere.
    pub fn create(
        &self,
        name: &str,
        scopes: &[String],
        expires: Option<SystemTime>,
    ) -> Result<String, TokenError> {
        let invalid = || TokenError::Name(name.chars().take(100).collect());
        let name = TokenName::new(name).ok_or_else(invalid)?;
        TokenScope::parse(scopes.iter().map(String::as_str))?;
        let _lock = self.lock()?;
        let mut tokens = self.read_named()?;
        let is_taken = tokens.iter().any(|token| token.name == name);
        if is_taken || name.as_str() == FIRST_TOKEN {
            return Err(TokenError::Taken(name.as_str().to_owned()));
        }
        if tokens.len() >= MAX_TOKENS {
            return Err(TokenError::TooMany);
        }
        let token = make_token()?;
        let (scopes, created) = (scopes.to_vec(), SystemTime::now());
        tokens.push(TokenRecord { name, scopes, created, expires, hash: hash(&token) });
        self.write_named(&tokens)?;
        Ok(token)
    }

    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        if name == FIRST_TOKEN {
            return Err(TokenError::First(self.first_path()));
        }
        let _lock = self.lock()?;
        let mut tokens = self.read_named()?;
        let before = tokens.len();
        tokens.retain(|token| token.name.as_str() != name);
        if tokens.len() == before {
            return Err(TokenError::Unknown(name.chars().take(100).collect()));
        }
        self.write_named(&tokens)
    }

    /// Returns all tokens, the first one first if it exists.
    pub fn list(&self) -> Result<Vec<TokenRecord>, TokenError> {
        let mut tokens = self.read_named()?;
        if std::fs::symlink_metadata(self.first_path()).is_ok() {
            tokens.insert(0, self.read_first()?);
        }
        Ok(tokens)
    }

    fn read_named(&self) -> Result<Vec<TokenRecord>, TokenError> {
        let path = self.list_path();
        let read = sealed_files::read(&path, TITLE, MAX_BYTES);
        let read = read.map_err(|error| TokenError::File(path.clone(), error))?;
        let Some((text, _)) = read else { return Ok(Vec::new()) };
        let damaged = || TokenError::File(path.clone(), SealedFileError::Damaged);
        let written: Vec<WrittenToken> = serde_json::from_str(&text).map_err(|_| damaged())?;
        written.into_iter().map(|token| token.read().ok_or_else(damaged)).collect()
    }

    fn write_named(&self, tokens: &[TokenRecord]) -> Result<(), TokenError> {
        let path = self.list_path();
        let written: Vec<WrittenToken> = tokens.iter().map(WrittenToken::of).collect();
        let text = serde_json::to_string(&written).unwrap_or_default();
        let done = sealed_files::write(&path, TITLE, &text);
        done.map(drop).map_err(|error| TokenError::Io(path, error))
    }
}

impl TokenRecord {
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    pub(crate) fn scope(&self) -> Result<TokenScope, InvalidScope> {
        TokenScope::parse(self.scopes.iter().map(String::as_str))
    }
}

impl WrittenToken {
    fn of(token: &TokenRecord) -> WrittenToken {
        WrittenToken {
            name: token.name.as_str().to_owned(),
            sha256: URL_SAFE_NO_PAD.encode(token.hash),
            scopes: token.scopes.clone(),
            created_ms: unix_ms(token.created),
            expires_ms: token.expires.map(unix_ms),
        }
    }

    fn read(self) -> Option<TokenRecord> {
        Some(TokenRecord {
            name: TokenName::new(&self.name)?,
            hash: URL_SAFE_NO_PAD.decode(&self.sha256).ok()?.try_into().ok()?,
            scopes: self.scopes,
            created: from_unix_ms(self.created_ms),
            expires: self.expires_ms.map(from_unix_ms),
        })
    }
}

fn make_token() -> Result<String, TokenError> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|_| TokenError::NoRandomness)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits)))
}

/// Tokens are random, so a fast hash is enough.
fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The tokens that are valid now. Follows the files.
pub(crate) struct LiveTokens {
    file: TokenFile,
    known: Mutex<KnownTokens>,
}

#[derive(Default)]
struct KnownTokens {
    stamps: Option<[Option<FileStamp>; 2]>,
    tokens: Arc<Vec<TokenRecord>>,
}

impl LiveTokens {
    pub(crate) fn new(file: TokenFile) -> LiveTokens {
        LiveTokens { file, known: Mutex::default() }
    }

    pub(crate) fn file(&self) -> &TokenFile {
        &self.file
    }

    /// Returns the valid tokens. A file that cannot be read has none.
    pub(crate) fn list(&self) -> Arc<Vec<TokenRecord>> {
        let paths = [self.file.first_path(), self.file.list_path()];
        let stamps = paths.map(|path| FileStamp::read(&path));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_settled = stamps.iter().flatten().all(|stamp| !stamp.is_recent());
        if known.stamps != Some(stamps) {
            let read = self.file.list().inspect_err(|error| {
                tracing::warn!(%error, "the tokens cannot be read, so none is valid");
            });
            known.tokens = Arc::new(read.unwrap_or_default());
            known.stamps = is_settled.then_some(stamps);
        }
        Arc::clone(&known.tokens)
    }

    /// Returns the record of a token that a client sent.
    ///
    /// THREAT[HTTP-1]: the time does not depend on how much of a token is right, or on which token
    /// it is.
    pub(crate) fn find(&self, token: &str, now: SystemTime) -> Option<TokenRecord> {
        let sent = hash(token);
        let mut found = None;
        for record in self.list().iter() {
            if bool::from(record.hash.ct_eq(&sent)) {
                found = Some(record.clone());
            }
        }
        found.filter(|record| !record.is_expired(now))
    }
}

#[cfg(test)]
mod tests;
