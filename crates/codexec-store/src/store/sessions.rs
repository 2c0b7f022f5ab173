use std::{sync::Arc, time::SystemTime};

use codexec_types::SessionId;
use rusqlite::Connection;

use super::Store;
use crate::{
    SessionStart, StoreError,
    execution::SessionRecord,
    sessions::{self, PackageInstall, SessionStartRow},
};

/// The limit of [`Store::list_sessions`].
const SESSIONS_MAX: u32 = 1_000;

impl Store {
    pub async fn begin_session(&self, start: &SessionStart<'_>) -> Result<(), StoreError> {
        let session = SessionStartRow::new(start);
        let owner = Arc::clone(&self.owner);
        let written = self.write(0, move |conn| session.insert(conn, &owner)).await;
        self.log_thread.add_entry();
        written
    }

    pub async fn record_package_install(
        &self,
        session: &SessionId,
        name: &str,
        version: Option<&str>,
        is_ok: bool,
        at: SystemTime,
    ) -> Result<(), StoreError> {
        let (name, version) = (name.to_owned(), version.map(str::to_owned));
        let install = PackageInstall { session: session.clone(), name, version, is_ok, at };
        let owner = Arc::clone(&self.owner);
        let written = self.write(0, move |conn| install.insert(conn, &owner)).await;
        self.log_thread.add_entry();
        written
    }

    /// Records the end of a session. Returns false, and changes nothing, if it has already ended.
    pub async fn end_session(
        &self,
        session: &SessionId,
        reason: &str,
        at: SystemTime,
        executions: u32,
    ) -> Result<bool, StoreError> {
        let (session, reason) = (session.clone(), reason.to_owned());
        let end = move |conn: &Connection| sessions::end(conn, &session, &reason, at, executions);
        let written = self.write(0, end).await;
        self.log_thread.add_entry();
        written
    }

    /// Lists the newest sessions, including ended ones; at most 1,000.
    pub async fn list_sessions(&self, limit: u32) -> Result<Vec<SessionRecord>, StoreError> {
        self.read(move |conn| sessions::list(conn, limit.min(SESSIONS_MAX))).await
    }
}
