//! Opens the database and starts its threads.

use std::{path::Path, sync::Arc};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{
    DatabaseThreadEnded, SqliteStore, database::Database, error::open_error, log_thread::LogThread,
    owner, read, readers::Readers, schema, unlogged::UnloggedEntries, writer,
};
use crate::{Durability, StoreError, journal::Journal, pending_ends::PendingEnds};

impl SqliteStore {
    /// Opens the database, or creates it with mode 0600. Its folder must exist.
    pub(crate) async fn open(
        path: &Path,
        durability: Durability,
    ) -> Result<SqliteStore, StoreError> {
        let path: Arc<Path> = path.into();
        let owners = owner::OwnerFolder::next_to(&path);
        let open = {
            let path = Arc::clone(&path);
            move || schema::open(&path, durability)
        };
        SqliteStore::start(path, owners, durability, open).await
    }

    async fn start(
        path: Arc<Path>,
        owners: owner::OwnerFolder,
        durability: Durability,
        open: impl FnOnce() -> Result<Connection, StoreError> + Send + 'static,
    ) -> Result<SqliteStore, StoreError> {
        let (jobs, queue) = mpsc::channel(writer::QUEUE);
        let (opened, is_open) = oneshot::channel();
        let (thread_path, thread_owners) = (Arc::clone(&path), owners.clone());
        let thread = writer::start(move || {
            let open_and_claim = || {
                let failed = |err| open_error(&thread_path, err);
                let lock = thread_owners.lock_opening().map_err(failed)?;
                let conn = open()?;
                drop(lock);
                let owner = claim(&conn, &thread_owners, &thread_path)?;
                let after = read::last_end(&conn).map_err(|err| open_error(&thread_path, err))?;
                Ok((conn, owner, after))
            };
            match open_and_claim() {
                Ok((conn, owner, after)) => {
                    let database = Arc::new(Database::new(conn));
                    let _ = opened.send(Ok((Arc::clone(&database), owner.id.clone(), after)));
                    writer::run(&database, queue);
                    // The owner's lock is released last, when nothing can be written any more.
                    drop(database);
                    drop(owner);
                }
                Err(err) => {
                    let _ = opened.send(Err(err));
                }
            }
        });
        thread.map_err(|err| open_error(&path, err))?;
        let (database, owner, after) =
            is_open.await.map_err(|_| open_error(&path, DatabaseThreadEnded))??;
        let owner: Arc<str> = owner.into();
        let pending_ends = Arc::<PendingEnds>::default();
        let journal = Journal::new(path.with_file_name("logs"), durability);
        let unlogged = UnloggedEntries::new(journal, Arc::clone(&owner), owners.clone());
        let log_thread = LogThread::start(
            Arc::clone(&path),
            Arc::clone(&database),
            unlogged,
            Arc::clone(&pending_ends),
        );
        let log_thread = Arc::new(log_thread.map_err(|err| open_error(&path, err))?);
        let readers = Arc::new(Readers::new(Arc::clone(&path)));
        Ok(SqliteStore {
            database,
            jobs,
            log_thread,
            readers,
            path,
            owner,
            after,
            owners,
            durability,
            pending_ends,
            last_pass: Arc::default(),
        })
    }
}

fn claim(
    conn: &Connection,
    owners: &owner::OwnerFolder,
    path: &Path,
) -> Result<owner::OwnerLock, StoreError> {
    let bits: [u8; 16] = conn
        .query_row("SELECT randomblob(16)", [], |row| row.get(0))
        .map_err(|err| open_error(path, err))?;
    owners.claim(u128::from_ne_bytes(bits)).map_err(|err| open_error(path, err))
}
