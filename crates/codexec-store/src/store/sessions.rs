use std::{sync::Arc, time::SystemTime};

use codexec_types::SessionId;
use rusqlite::Connection;

use super::Store;
use crate::{
    PackageInstall, ReadScope, SessionQuery, SessionStart, StoreError,
    execution::SessionRecord,
    sessions::{self, PackageInstallRow, SessionStartRow},
};

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
        install: &PackageInstall<'_>,
    ) -> Result<(), StoreError> {
        let row = PackageInstallRow::new(install);
        let owner = Arc::clone(&self.owner);
        let written = self.write(0, move |conn| row.insert(conn, &owner)).await;
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

    /// Lists the sessions that the query and the scope describe.
    pub async fn list_sessions(
        &self,
        query: SessionQuery,
        scope: &ReadScope,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let (scope, owner) = (scope.clone(), Arc::clone(&self.owner));
        self.read(move |conn| sessions::list(conn, &query, &scope, &owner)).await
    }
}
