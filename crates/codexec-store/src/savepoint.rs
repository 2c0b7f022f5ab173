use rusqlite::{Connection, Result};

/// Several statements, wholly or not at all, alone or within a transaction that others share.
pub(crate) fn atomically<T>(conn: &Connection, work: impl FnOnce() -> Result<T>) -> Result<T> {
    conn.prepare_cached("SAVEPOINT together")?.execute([])?;
    let released = work().and_then(|value| {
        conn.prepare_cached("RELEASE together")?.execute([])?;
        Ok(value)
    });
    if released.is_err() {
        // On a full disk SQLite may have rolled back by itself; then there is nothing to undo.
        let _ = conn.execute_batch("ROLLBACK TO together; RELEASE together");
    }
    released
}
