//! Snapshots of sessions, stored as files.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use codexec_files::private_files;
use codexec_types::{Grant, Identity, Language, Principal};
use serde::{Deserialize, Serialize};

use crate::RecordedCell;

/// Maximum length of a file that is read.
const MAX_BYTES: u64 = 96 << 20;
const MAX_NAME_CHARS: usize = 64;

/// The cells of a session up to a moment, under a name.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) name: String,
    pub(crate) principal: Principal,
    /// The server that created the snapshot, as records name it. Empty in those of an older
    /// codexec.
    #[serde(default)]
    pub(crate) server: String,
    pub(crate) language: Language,
    /// The time of creation.
    pub(crate) at: String,
    pub(crate) cells: Vec<RecordedCell>,
}

/// The folder of snapshots.
pub(crate) struct Snapshots(PathBuf);

/// A filter for the snapshots that a client may use.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotFilter {
    pub(crate) identity: Identity,
    /// Only snapshots that this server created.
    pub(crate) server: Option<String>,
}

impl SnapshotFilter {
    fn matches(&self, snapshot: &Snapshot) -> bool {
        let is_made_here = |server: &String| *server == snapshot.server;
        let is_own = self.identity == *snapshot.principal.identity();
        is_own && self.server.as_ref().is_none_or(is_made_here)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(
        "session_id: {0} sessions cannot be restored; javascript, typescript and python sessions can"
    )]
    Language(Language),
    #[error("session_id: a snapshot holds at most {max} MiB of code and answers, and this session has more", max = crate::sessions::MAX_RECORD_BYTES >> 20)]
    TooLong,
    #[error(
        "session_id: its code or answers contain what looks like a secret, which is not stored on disk; remove it from the code, and pass it as `input` of a later send"
    )]
    Secret,
    #[error("name: {0:?} is not allowed; write 1 to {MAX_NAME_CHARS} letters, digits, `-` and `_`")]
    Name(String),
    #[error("name: there is no snapshot {0:?} of yours")]
    Unknown(String),
    #[error(
        "name: this client has created no snapshot {0:?} since codexec was started, and code may use \
         no others; {how}",
        how = Grant::AllSessions.describe_how_to_grant()
    )]
    NotOwn(String),
    #[error(
        "name: the snapshot {0:?} exists already, and code may not replace a snapshot that its own \
         client did not create; use another name; {how}",
        how = Grant::AllSessions.describe_how_to_grant()
    )]
    Taken(String),
    #[error("name: the snapshot {0:?} cannot be read; it is damaged")]
    Damaged(String),
    #[error("the snapshot cannot be stored")]
    Io(#[from] io::Error),
}

pub(crate) fn check_name(name: &str) -> Result<(), SnapshotError> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    match !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(SnapshotError::Name(name.chars().take(40).collect())),
    }
}

impl Snapshots {
    /// Returns the snapshots of one identity. The names of one do not collide with those of
    /// another.
    pub(crate) fn of(identity: &Identity, folder: PathBuf) -> Snapshots {
        match identity {
            Identity::LocalUser => Snapshots(folder),
            Identity::Token(name) => Snapshots(folder.join(format!("token-{}", name.as_str()))),
        }
    }

    /// Saves a snapshot atomically. Replaces one of the same name if `over` includes it.
    pub(crate) async fn save(
        self,
        snapshot: Snapshot,
        over: SnapshotFilter,
    ) -> Result<(), SnapshotError> {
        blocking(move || {
            let text = serde_json::to_string(&snapshot).map_err(io::Error::from)?;
            if matches!(codexec_store::mask(&text), Cow::Owned(_)) {
                return Err(SnapshotError::Secret);
            }
            let path = self.path(&snapshot.name);
            // THREAT[OWN-5]: code replaces no snapshot of others.
            let is_free = match read(&path) {
                Ok(old) => over.matches(&old),
                Err(error) => error.kind() == io::ErrorKind::NotFound || over.server.is_none(),
            };
            if !is_free {
                return Err(SnapshotError::Taken(snapshot.name));
            }
            private_files::replace(&path, text.as_bytes())?;
            Ok(())
        })
        .await
    }

    /// THREAT[OWN-5]: a snapshot of somebody else is reported as missing.
    pub(crate) async fn load(
        self,
        name: &str,
        filter: SnapshotFilter,
    ) -> Result<Snapshot, SnapshotError> {
        let name = name.to_owned();
        blocking(move || {
            let unknown = || match filter.server {
                Some(_) => SnapshotError::NotOwn(name.clone()),
                None => SnapshotError::Unknown(name.clone()),
            };
            let snapshot = read(&self.path(&name)).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => unknown(),
                _ if filter.server.is_some() => unknown(),
                io::ErrorKind::InvalidData => SnapshotError::Damaged(name.clone()),
                _ => error.into(),
            })?;
            if filter.matches(&snapshot) { Ok(snapshot) } else { Err(unknown()) }
        })
        .await
    }

    /// Returns the names, sorted.
    pub(crate) async fn list(self, filter: SnapshotFilter) -> Result<Vec<String>, SnapshotError> {
        blocking(move || {
            let entries = match fs::read_dir(&self.0) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error.into()),
            };
            let paths = entries.flatten().map(|entry| entry.path());
            let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
            let read = paths.filter(is_one).filter_map(|path| read(&path).ok());
            let visible = read.filter(|snapshot| filter.matches(snapshot));
            let mut names: Vec<String> = visible.map(|snapshot| snapshot.name).collect();
            names.sort();
            Ok(names)
        })
        .await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }
}

fn read(path: &Path) -> io::Result<Snapshot> {
    let file = private_files::open_to_read(path)?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(|_| io::ErrorKind::InvalidData.into())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SnapshotError> + Send + 'static,
) -> Result<T, SnapshotError> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
