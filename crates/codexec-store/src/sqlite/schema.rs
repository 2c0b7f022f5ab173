//! Opens the database file and migrates it to the current schema.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use codexec_files::private_files;
use rusqlite::{Connection, TransactionBehavior};

use super::error::open_error;
use crate::{Durability, StoreError};

/// The n-th migration brings the schema to version n. Never edit a released migration.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_executions.sql"),
    include_str!("../../migrations/sqlite/0002_what_it_left.sql"),
    include_str!("../../migrations/sqlite/0003_logs.sql"),
    include_str!("../../migrations/sqlite/0004_allowed_tools.sql"),
    include_str!("../../migrations/sqlite/0005_identity.sql"),
    include_str!("../../migrations/sqlite/0006_call_starts.sql"),
];

/// How long a write waits for another process's write.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn open(path: &Path, durability: Durability) -> Result<Connection, StoreError> {
    create_private(path).map_err(|err| open_error(path, err))?;
    let conn = Connection::open(path).map_err(|err| open_error(path, err))?;
    prepare(conn, path, durability)
}

/// Creates the file with mode 0600, or restricts its mode. SQLite creates its other files with the
/// same mode. An existing database is not opened here: closing it would release the POSIX locks
/// that another connection of this process holds on it.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    match private_files::create(path) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(err),
        Ok(_) | Err(_) => {}
    }
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o600);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

fn prepare(
    mut conn: Connection,
    path: &Path,
    durability: Durability,
) -> Result<Connection, StoreError> {
    let failed = |err| open_error(path, err);
    conn.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    migrate(&mut conn, path)?;
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).map_err(failed)?;
    // Commits survive the death of the process either way. With `normal`, a power failure may lose
    // the last commits, but does not damage the file.
    let synchronous = match durability {
        Durability::Process => "normal",
        Durability::Power => "full",
    };
    conn.pragma_update(None, "synchronous", synchronous).map_err(failed)?;
    // A checkpoint waits for the disk, so checkpoint.rs does it on another thread.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).map_err(failed)?;
    Ok(conn)
}

fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |err| open_error(path, err);
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let version = |conn: &Connection| conn.query_row("PRAGMA user_version", [], |row| row.get(0));
    // Usually the schema is current, and no write lock is needed.
    if version(conn).map_err(failed)? == known {
        return Ok(());
    }
    let transaction =
        conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found: u32 = version(&transaction).map_err(failed)?;
    if found > known {
        return Err(StoreError::Newer { database: path.display().to_string(), found, known });
    }
    for (number, migration) in (1..=known).zip(MIGRATIONS).skip(found as usize) {
        transaction.execute_batch(migration).map_err(failed)?;
        transaction.pragma_update(None, "user_version", number).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}
