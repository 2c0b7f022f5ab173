use std::{path::Path, sync::Arc, time::SystemTime};

use codexec_types::{ExecutionId, SessionId};

use crate::{
    ReadScope, StoreError,
    call_row::{FinishedCall, NewCall, PendingCallEnds},
    execution::{
        ExecutionCounts, ExecutionRecord, ExecutionSummary, ExecutionTotals, SessionRecord,
    },
    execution_row::{ExecutionEndRow, ExecutionStartRow},
    pending_ends::PendingEnd,
    query::{LogPage, LogQuery, PAGE_MAX, SessionQuery},
    record::{
        CallEnd, CallStart, Durability, ExecutionEnd, ExecutionStart, PackageInstall, SessionStart,
    },
    retention::{Retention, RetentionReport},
    session_row::{PackageInstallRow, SessionEndRow, SessionStartRow},
    sqlite::SqliteStore,
};

/// Longer texts are masked on a blocking thread.
const MASKED_INLINE_BYTES: usize = 64 << 10;

/// A handle to the store. Clones share it; the last drop closes it.
///
/// Texts are masked and truncated here, before a backend gets them.
#[derive(Clone, Debug)]
pub struct Store {
    backend: Backend,
    call_ends: Arc<PendingCallEnds>,
}

/// The database that has the rows.
#[derive(Clone, Debug)]
enum Backend {
    Sqlite(SqliteStore),
}

impl Store {
    /// Opens the SQLite database at `path`, or creates it with mode 0600. Its folder must exist.
    pub async fn open(path: &Path, durability: Durability) -> Result<Store, StoreError> {
        let backend = Backend::Sqlite(SqliteStore::open(path, durability).await?);
        Ok(Store { backend, call_ends: Arc::default() })
    }

    /// Returns the id of this server process in the records.
    pub fn server_id(&self) -> &str {
        match &self.backend {
            Backend::Sqlite(store) => store.server_id(),
        }
    }

    /// Records the start of an execution, before any of it runs.
    pub async fn begin(&self, begin: ExecutionStart<'_>) -> Result<(), StoreError> {
        let row = ExecutionStartRow::new(&begin);
        let row = self.mask(row.text_bytes(), move || row.mask()).await?;
        match &self.backend {
            Backend::Sqlite(store) => store.begin(row).await,
        }
    }

    /// Records a tool call of `id` before it is sent. The caller numbers the calls.
    pub async fn begin_call(
        &self,
        id: &ExecutionId,
        number: u32,
        call: &CallStart<'_>,
    ) -> Result<(), StoreError> {
        let row = NewCall::new(id, number, call);
        let is_running = match &self.backend {
            Backend::Sqlite(store) => store.begin_call(row).await?,
        };
        if is_running { Ok(()) } else { Err(StoreError::NotRunning(id.clone())) }
    }

    /// Records the end of a tool call of `id`, at the latest when its execution ends.
    pub async fn finish_call(&self, id: &ExecutionId, number: u32, end: CallEnd<'_>) {
        if !self.call_ends.push(id, FinishedCall::new(number, &end)) {
            return;
        }
        let ends = self.call_ends.take(id);
        let written = match &self.backend {
            Backend::Sqlite(store) => store.finish_calls(id, ends).await,
        };
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write the ends of tool calls of {id}");
        }
    }

    /// Records the end of `id`. A second end changes nothing and is an error. An end that cannot
    /// be written is an error, too; the store retries it in the background.
    pub async fn finish(
        &self,
        id: &ExecutionId,
        finish: ExecutionEnd<'_>,
    ) -> Result<(), StoreError> {
        let finished = ExecutionEndRow::new(id, &finish);
        let text_bytes = finish.output.text().len() + finish.value.map_or(0, str::len);
        let finished = if text_bytes > MASKED_INLINE_BYTES {
            let (written, value) = (finish.output.clone(), finish.value.map(str::to_owned));
            self.mask(text_bytes, move || finished.with_texts(&written, value.as_deref())).await?
        } else {
            finished.with_texts(finish.output, finish.value)
        };
        let end = PendingEnd { finished, calls: self.call_ends.take(id) };
        let was_running = match &self.backend {
            Backend::Sqlite(store) => store.finish(end).await?,
        };
        if was_running { Ok(()) } else { Err(StoreError::NotRunning(id.clone())) }
    }

    pub async fn begin_session(&self, start: &SessionStart<'_>) -> Result<(), StoreError> {
        let row = SessionStartRow::new(start);
        match &self.backend {
            Backend::Sqlite(store) => store.begin_session(row).await,
        }
    }

    pub async fn record_package_install(
        &self,
        install: &PackageInstall<'_>,
    ) -> Result<(), StoreError> {
        let row = PackageInstallRow::new(install);
        match &self.backend {
            Backend::Sqlite(store) => store.record_package_install(row).await,
        }
    }

    /// Records the end of a session. Returns false, and changes nothing, if it has already ended.
    pub async fn end_session(
        &self,
        session: &SessionId,
        reason: &str,
        at: SystemTime,
        executions: u32,
    ) -> Result<bool, StoreError> {
        let (id, reason) = (session.clone(), reason.to_owned());
        let row = SessionEndRow { id, reason, at, executions };
        match &self.backend {
            Backend::Sqlite(store) => store.end_session(row).await,
        }
    }

    /// Lists the sessions that the query and the scope describe.
    pub async fn list_sessions(
        &self,
        query: SessionQuery,
        scope: &ReadScope,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.list_sessions(query, scope.clone()).await,
        }
    }

    /// Searches the executions that the scope includes.
    pub async fn search(&self, query: &LogQuery, scope: &ReadScope) -> Result<LogPage, StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.search(query.clone(), scope.clone()).await,
        }
    }

    /// Returns an execution, if the scope includes it.
    pub async fn get(
        &self,
        id: &ExecutionId,
        scope: &ReadScope,
    ) -> Result<Option<ExecutionRecord>, StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.get(id.clone(), scope.clone()).await,
        }
    }

    /// Tells whether there is an execution with this id in the scope.
    pub async fn contains(&self, id: &ExecutionId, scope: &ReadScope) -> Result<bool, StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.contains(id.clone(), scope.clone()).await,
        }
    }

    /// Lists the newest executions of the scope without their texts; at most 1,000.
    pub async fn list_recent(
        &self,
        limit: u32,
        scope: &ReadScope,
    ) -> Result<Vec<ExecutionSummary>, StoreError> {
        let limit = limit.min(PAGE_MAX);
        match &self.backend {
            Backend::Sqlite(store) => store.list_recent(limit, scope.clone()).await,
        }
    }

    pub async fn count_executions(&self, scope: &ReadScope) -> Result<ExecutionCounts, StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.count_executions(scope.clone()).await,
        }
    }

    pub async fn count_totals(&self, scope: &ReadScope) -> Result<ExecutionTotals, StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.count_totals(scope.clone()).await,
        }
    }

    /// Ends the running executions of dead servers, as `failed` with the code `interrupted`.
    /// Returns how many. Executions of living servers are left alone.
    pub async fn interrupt_leftovers(&self, now: SystemTime) -> Result<u64, StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.interrupt_leftovers(now).await,
        }
    }

    /// Removes expired executions and sessions, and the oldest ones if all together take too much
    /// space. Each call removes a limited number. Call this about once an hour.
    pub async fn apply_retention(
        &self,
        retention: &Retention,
        now: SystemTime,
    ) -> Result<RetentionReport, StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.apply_retention(retention.clone(), now).await,
        }
    }

    /// Waits until all entries of this server are in the log files. Failed writes are retried;
    /// whatever is left when this server ends, the next one writes.
    pub async fn flush(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Sqlite(store) => store.flush().await,
        }
    }

    /// Runs `mask`, on a blocking thread if the text is long: it would block the event loop.
    async fn mask<T: Send + 'static>(
        &self,
        text_bytes: usize,
        mask: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        if text_bytes <= MASKED_INLINE_BYTES {
            return Ok(mask());
        }
        tokio::task::spawn_blocking(mask).await.map_err(|err| {
            let database = match &self.backend {
                Backend::Sqlite(store) => store.database(),
            };
            StoreError::Write { database, source: Arc::new(err) }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
