use rusqlite::{Connection, Result};

/// Several statements, wholly or not at all, alone or within a transaction that others share.
pub(crate) fn atomically<T>(conn: &Connection, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // Alone it must say at once that it is going to write: a transaction that has read before
    // cannot wait for another process's write.
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
        // On a full disk SQLite may have rolled back by itself; then there is nothing to undo.
        let _ = conn.execute_batch(undo);
    }
    done
}
