//! The owner of an execution: the server process that runs it. Lock files show which are alive.
//!
//! Every server process holds a lock on its own file. The kernel releases the lock when the process
//! dies, however it dies. So no heartbeat is needed, and a process that reuses the pid of a dead
//! one is not mistaken for it.
//!
//! A process does not see its own locks of this kind ([`ProcessLock`]), so it remembers its own ids
//! and never opens its own files again.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process,
    sync::{Mutex, MutexGuard, PoisonError},
};

use codexec_files::{FileLock, ProcessLock, private_files};

/// The owner ids of this process.
static OWN_IDS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The folder of the lock files.
#[derive(Clone, Debug)]
pub(crate) struct OwnerFolder(PathBuf);

/// This process's lock. Dropped when none of its executions runs any more.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    pub(crate) id: String,
    path: PathBuf,
    _lock: ProcessLock,
}

impl OwnerFolder {
    pub(crate) fn next_to(database: &Path) -> OwnerFolder {
        OwnerFolder(database.with_file_name("owners"))
    }

    /// Waits for the lock on opening the database, which is held until the returned lock is
    /// dropped. Two servers cannot initialise a new database at the same time.
    pub(crate) fn lock_opening(&self) -> io::Result<FileLock> {
        let OwnerFolder(folder) = self;
        FileLock::acquire(&folder.join("opening"))
    }

    pub(crate) fn claim(&self, bits: u128) -> io::Result<OwnerLock> {
        let id = format!("{bits:032x}");
        let OwnerFolder(folder) = self;
        // Locked before it gets its final name, so that others never see it unlocked.
        let unnamed = folder.join(format!("{id}.new"));
        let mut file = private_files::create(&unnamed)?;
        writeln!(file, "pid {}", process::id())?;
        let lock = ProcessLock::acquire(file)?;
        let path = folder.join(file_name(&id));
        own_ids().insert(id.clone());
        fs::rename(&unnamed, &path)?;
        Ok(OwnerLock { id, path, _lock: lock })
    }

    /// Returns true if the owner is alive, or in doubt: a row that stays `running` too long does
    /// less harm than one that is ended under a living server.
    pub(crate) fn is_alive(&self, id: &str) -> bool {
        let OwnerFolder(folder) = self;
        // The id comes from a file, so it is checked before it becomes part of a path.
        let is_valid = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        is_valid
            && (own_ids().contains(id)
                || ProcessLock::is_held_elsewhere(&folder.join(file_name(id))))
    }

    /// Removes the lock files of dead servers. An owner without a file is dead, too.
    pub(crate) fn remove_dead(&self) {
        let OwnerFolder(folder) = self;
        let Ok(entries) = fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if path.extension().is_some_and(|end| end == "lock") && !self.is_alive(id) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        own_ids().remove(&self.id);
    }
}

fn own_ids() -> MutexGuard<'static, BTreeSet<String>> {
    OWN_IDS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file_name(id: &str) -> String {
    format!("{id}.lock")
}

#[cfg(test)]
mod tests;
