//! The owner of an execution: the server process that runs it. Lock files show which are alive.
//!
//! Every server process holds a lock on its own file. The kernel releases the lock when the process
//! dies, however it dies. So no heartbeat is needed, and a process that reuses the pid of a dead
//! one is not mistaken for it.
//!
//! The lock is a POSIX record lock (`F_SETLK`), which belongs to the process. A forked child that
//! has not called exec yet would keep a lock of the open file for its dead parent. A process does
//! not see its own record locks and loses them when it closes any descriptor of the file, so it
//! remembers its own ids and never opens its own files again.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::{Mutex, MutexGuard, PoisonError},
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};

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
    _lock: File,
}

impl OwnerFolder {
    pub(crate) fn next_to(database: &Path) -> OwnerFolder {
        OwnerFolder(database.with_file_name("owners"))
    }

    /// Waits for the lock on opening the database, which is held until the returned file is
    /// dropped. Two servers cannot initialise a new database at the same time.
    pub(crate) fn lock_opening(&self) -> io::Result<File> {
        let OwnerFolder(folder) = self;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600);
        let file = file.open(folder.join("opening"))?;
        file.lock()?;
        Ok(file)
    }

    pub(crate) fn claim(&self, bits: u128) -> io::Result<OwnerLock> {
        let id = format!("{bits:032x}");
        let OwnerFolder(folder) = self;
        // Locked before it gets its final name, so that others never see it unlocked.
        let unnamed = folder.join(format!("{id}.new"));
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed)?;
        fcntl(&file, FcntlArg::F_SETLK(&exclusive_lock()))?;
        writeln!(file, "pid {}", process::id())?;
        let path = folder.join(file_name(&id));
        own_ids().insert(id.clone());
        fs::rename(&unnamed, &path)?;
        Ok(OwnerLock { id, path, _lock: file })
    }

    /// Returns true if the owner is alive, or in doubt: a row that stays `running` too long does
    /// less harm than one that is ended under a living server.
    pub(crate) fn is_alive(&self, id: &str) -> bool {
        let OwnerFolder(folder) = self;
        // The id comes from a file, so it is checked before it becomes part of a path.
        let is_valid = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        is_valid && (own_ids().contains(id) || is_locked(&folder.join(file_name(id))))
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

/// Returns true if another process has locked the file.
fn is_locked(path: &Path) -> bool {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(err) => return err.kind() != io::ErrorKind::NotFound,
    };
    let mut lock = exclusive_lock();
    let queried = fcntl(&file, FcntlArg::F_GETLK(&mut lock));
    queried.is_err() || i32::from(lock.l_type) != libc::F_UNLCK
}

fn exclusive_lock() -> libc::flock {
    let (l_type, l_whence) = (libc::F_WRLCK as libc::c_short, libc::SEEK_SET as libc::c_short);
    libc::flock { l_type, l_whence, l_start: 0, l_len: 0, l_pid: 0 }
}

#[cfg(test)]
mod tests;
