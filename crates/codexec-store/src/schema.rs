//! Opening the file and bringing it to today's schema.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
    time::Duration,
};

use rusqlite::{Connection, TransactionBehavior};

use crate::{Durability, StoreError};

/// The n-th brings the schema to version n. Never edit one that was released.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_executions.sql"),
    include_str!("../migrations/0002_what_it_left.sql"),
    include_str!("../migrations/0003_logs.sql"),
    include_str!("../migrations/0004_allowed_tools.sql"),
];

/// How long a write waits for another process's.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

pub(crate) fn open(path: &Path, durability: Durability) -> Result<Connection, StoreError> {
    private(path).map_err(|err| StoreError::open(path, err))?;
    let conn = Connection::open(path).map_err(|err| StoreError::open(path, err))?;
    prepare(conn, path, durability)
}

/// SQLite gives its own files beside the database the database's mode. A database that is there
/// is not opened here: closing it again would take away the locks that another connection of
/// this process has on it.
pub(crate) fn private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
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
    let failed = |err| StoreError::open(path, err);
    conn.busy_timeout(BUSY).map_err(failed)?;
    migrate(&mut conn, path)?;
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).map_err(failed)?;
    // What is committed survives the death of the process either way. With `normal` the last
    // moments before a power failure may be lost; the file is whole all the same.
    let synchronous = match durability {
        Durability::Process => "normal",
        Durability::Power => "full",
    };
    conn.pragma_update(None, "synchronous", synchronous).map_err(failed)?;
    // Writing the log back waits for the disk; checkpoint.rs does it, beside the writers.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).map_err(failed)?;
    Ok(conn)
}

fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |err| StoreError::open(path, err);
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let version = |conn: &Connection| conn.query_row("PRAGMA user_version", [], |row| row.get(0));
    // The usual start needs no write lock.
    if version(conn).map_err(failed)? == known {
        return Ok(());
    }
    let transaction =
        conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found: u32 = version(&transaction).map_err(failed)?;
    if found > known {
        return Err(StoreError::newer(path, found, known));
    }
    for (number, migration) in (1..=known).zip(MIGRATIONS).skip(found as usize) {
        transaction.execute_batch(migration).map_err(failed)?;
        transaction.pragma_update(None, "user_version", number).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}
