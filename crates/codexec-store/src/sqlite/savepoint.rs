use rusqlite::{Connection, Result};

/// Runs several statements atomically: in their own transaction, or in a savepoint of the current
/// one.
pub(crate) fn run_atomically<T>(conn: &Connection, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // IMMEDIATE takes the write lock first: SQLite does not wait for another process's write in a
    // transaction that has already read.
    let (begin, end, undo) = if conn.is_autocommit() {
        ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
    } else {
        ("SAVEPOINT together", "RELEASE together", "ROLLBACK TO together; RELEASE together")
    };
    conn.prepare_cached(begin)?.execute([])?;
    let done = work().and_then(|value| {
        conn.prepare_cached(end)?.execute([])?;
        Ok(value)
    });
    if done.is_err() {
        // On a full disk SQLite may have rolled back already, and this fails.
        let _ = conn.execute_batch(undo);
    }
    done
}
