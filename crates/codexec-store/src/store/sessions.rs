use std::{sync::Arc, time::SystemTime};

use codexec_types::SessionId;
use rusqlite::Connection;

use super::Store;
use crate::{SessionStart, StoreError, execution::Session, sessions};

/// The most that [`Store::sessions`] gives.
const SESSIONS_MAX: u32 = 1_000;

impl Store {
    pub async fn session_started(&self, start: &SessionStart<'_>) -> Result<(), StoreError> {
        let started = sessions::Started::new(start);
        let owner = Arc::clone(&self.owner);
        let written = self.write(0, move |conn| started.insert(conn, &owner)).await;
        self.clerk.entry();
        written
    }

    pub async fn session_package(
        &self,
        session: &SessionId,
        name: &str,
        version: Option<&str>,
        is_ok: bool,
        at: SystemTime,
    ) -> Result<(), StoreError> {
        let (name, version) = (name.to_owned(), version.map(str::to_owned));
        let installed = sessions::Installed { session: session.clone(), name, version, is_ok, at };
        let owner = Arc::clone(&self.owner);
        let written = self.write(0, move |conn| installed.insert(conn, &owner)).await;
        self.clerk.entry();
        written
    }

    /// Says whether it lived until now: a second end changes nothing.
    pub async fn session_ended(
        &self,
        session: &SessionId,
        reason: &str,
        at: SystemTime,
        executions: u32,
    ) -> Result<bool, StoreError> {
        let (session, reason) = (session.clone(), reason.to_owned());
        let end = move |conn: &Connection| sessions::end(conn, &session, &reason, at, executions);
        let written = self.write(0, end).await;
        self.clerk.entry();
        written
    }

    /// The newest sessions, ended ones too; 1,000 at most.
    pub async fn sessions(&self, limit: u32) -> Result<Vec<Session>, StoreError> {
        self.read(move |conn| sessions::list(conn, limit.min(SESSIONS_MAX))).await
    }
}
