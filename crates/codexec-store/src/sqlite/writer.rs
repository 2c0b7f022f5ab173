//! The thread for writes that may have to wait: for other writes, for another process, or because
//! of a long text.

use std::{io, sync::Arc, thread};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::mpsc;

use super::database::Database;
use crate::error::Cause;

/// The capacity of the queue.
pub(crate) const QUEUE: usize = 256;

/// The maximum number of writes in one commit.
const BATCH: usize = 64;

/// A write: takes the connection, or the error that prevents the write.
pub(crate) type WriteJob = Box<dyn FnOnce(Result<&Connection, Cause>) -> WriteReply + Send>;

/// Sends the caller the result of a write, once its commit has succeeded or failed.
pub(crate) type WriteReply = Box<dyn FnOnce(Result<(), Cause>)>;

#[derive(Debug, thiserror::Error)]
#[error("rolled back, because another write in the same transaction failed")]
struct RolledBack;

pub(crate) fn start(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("codexec-store".to_owned()).spawn(body).map(|_| ())
}

/// Runs jobs until the last sender is gone.
pub(crate) fn run(database: &Database, mut jobs: mpsc::Receiver<WriteJob>) {
    let mut batch = Vec::with_capacity(BATCH);
    while jobs.blocking_recv_many(&mut batch, BATCH) > 0 {
        let mut open = database.lock();
        if batch.len() == 1 {
            // A single statement is its own transaction.
            for job in batch.drain(..) {
                job(Ok(&open.conn))(Ok(()));
            }
        } else {
            run_batch(&open.conn, batch.drain(..));
        }
        open.checkpointer.count_commit();
    }
}

/// Runs jobs in one transaction, and replies to all of them after the commit.
fn run_batch(conn: &Connection, jobs: impl Iterator<Item = WriteJob>) {
    let transaction = match Transaction::new_unchecked(conn, TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(err) => {
            let cause: Cause = Arc::new(err);
            jobs.for_each(|job| job(Err(Arc::clone(&cause)))(Ok(())));
            return;
        }
    };
    let mut is_rolled_back = false;
    let mut replies: Vec<WriteReply> = Vec::with_capacity(BATCH);
    for job in jobs {
        replies.push(job(if is_rolled_back { Err(Arc::new(RolledBack)) } else { Ok(conn) }));
        // On a full disk SQLite may roll back the whole transaction. Later jobs would then commit
        // on their own, and earlier ones would report a commit that never happened.
        is_rolled_back |= conn.is_autocommit();
    }
    let committed: Result<(), Cause> = if is_rolled_back {
        Err(Arc::new(RolledBack))
    } else {
        transaction.commit().map_err(|err| -> Cause { Arc::new(err) })
    };
    for reply in replies {
        reply(committed.clone());
    }
}
