//! The thread for what may have to wait: for its turn, for another process, or for a long text.

use std::{io, sync::Arc, thread};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::mpsc;

use crate::{database::Database, error::Cause};

/// How many callers may wait before the next one has to wait for a place.
pub(crate) const QUEUE: usize = 256;

/// How many writes share one commit at most.
const GROUP: usize = 64;

/// Something to do with the database, or the reason why nothing can be done with it.
pub(crate) type Job = Box<dyn FnOnce(Result<&Connection, Cause>) -> Reply + Send>;

/// Tells the caller, once it is known whether what the job did was committed.
pub(crate) type Reply = Box<dyn FnOnce(Result<(), Cause>)>;

#[derive(Debug, thiserror::Error)]
#[error("another write failed in the same transaction and undid this one")]
struct Undone;

pub(crate) fn start(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("codexec-store".to_owned()).spawn(body).map(|_| ())
}

/// Works until the last sender is gone.
pub(crate) fn work(database: &Database, mut jobs: mpsc::Receiver<Job>) {
    let mut waiting = Vec::with_capacity(GROUP);
    while jobs.blocking_recv_many(&mut waiting, GROUP) > 0 {
        let mut open = database.lock();
        if waiting.len() == 1 {
            // A statement alone is its own transaction.
            for job in waiting.drain(..) {
                job(Ok(&open.conn))(Ok(()));
            }
        } else {
            group(&open.conn, waiting.drain(..));
        }
        open.checkpointer.committed();
    }
}

/// Those who wait together pay for one commit together, and hear of it only when it is done.
fn group(conn: &Connection, jobs: impl Iterator<Item = Job>) {
    let transaction = match Transaction::new_unchecked(conn, TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(err) => {
            let cause: Cause = Arc::new(err);
            jobs.for_each(|job| job(Err(Arc::clone(&cause)))(Ok(())));
            return;
        }
    };
    let mut is_undone = false;
    let mut replies: Vec<Reply> = Vec::with_capacity(GROUP);
    for job in jobs {
        replies.push(job(if is_undone { Err(Arc::new(Undone)) } else { Ok(conn) }));
        // On a full disk SQLite may roll back by itself. Whoever came after would then commit
        // alone, and whoever came before would hear of a commit that never was.
        is_undone |= conn.is_autocommit();
    }
    let committed: Result<(), Cause> = if is_undone {
        Err(Arc::new(Undone))
    } else {
        transaction.commit().map_err(|err| -> Cause { Arc::new(err) })
    };
    for reply in replies {
        reply(committed.clone());
    }
}
