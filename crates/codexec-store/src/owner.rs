//! Who runs an execution, and whether it is still alive.
//!
//! Every server process holds a lock on a file of its own for as long as it lives. The kernel
//! lets go of the lock when the process dies, however it dies, so nobody needs a heartbeat, and
//! a process that got the pid of a dead one is not taken for it.
//!
//! It is a lock of the process, not of the open file: a child that was just forked and has not
//! become another program yet would keep the latter for its dead parent. Such locks are not seen
//! by the process that has them, and are gone when it closes any descriptor of the file; so a
//! process knows its own by name, and opens none of them twice.

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

/// The owners that this process is.
static OURS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Where the lock files are.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// This process's lock. Dropping it says that nothing here runs any more.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) id: String,
    path: PathBuf,
    _lock: File,
}

impl Folder {
    pub(crate) fn beside(database: &Path) -> Folder {
        Folder(database.with_file_name("owners"))
    }

    /// Waits until no other server is opening the database; that ends when the file is dropped.
    /// Two that turn a new file into a database at once would get in each other's way.
    pub(crate) fn alone(&self) -> io::Result<File> {
        let Folder(folder) = self;
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600);
        let file = file.open(folder.join("opening"))?;
        file.lock()?;
        Ok(file)
    }

    pub(crate) fn claim(&self, bits: u128) -> io::Result<Owner> {
        let id = format!("{bits:032x}");
        let Folder(folder) = self;
        // Locked before it gets the name that others look for: they never see it unlocked.
        let unborn = folder.join(format!("{id}.new"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unborn)?;
        fcntl(&file, FcntlArg::F_SETLK(&whole_file()))?;
        writeln!(file, "pid {}", process::id())?;
        let path = folder.join(file_name(&id));
        ours().insert(id.clone());
        fs::rename(&unborn, &path)?;
        Ok(Owner { id, path, _lock: file })
    }

    /// In doubt it is alive: a row that stays `running` too long does less harm than one that
    /// is ended under a living server.
    pub(crate) fn is_alive(&self, id: &str) -> bool {
        let Folder(folder) = self;
        // No owner has such a name, and a name out of a file must not become a path.
        let is_name = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        is_name && (ours().contains(id) || is_locked(&folder.join(file_name(id))))
    }

    /// Removes the files of servers that were killed. Their rows need them no more: an owner
    /// without a file is dead.
    pub(crate) fn tidy(&self) {
        let Folder(folder) = self;
        let Ok(entries) = fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if path.extension().is_some_and(|end| end == "lock") && !self.is_alive(id) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        ours().remove(&self.id);
    }
}

fn ours() -> MutexGuard<'static, BTreeSet<String>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file_name(id: &str) -> String {
    format!("{id}.lock")
}

/// Whether another process has it locked.
fn is_locked(path: &Path) -> bool {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(err) => return err.kind() != io::ErrorKind::NotFound,
    };
    let mut lock = whole_file();
    let is_told = fcntl(&file, FcntlArg::F_GETLK(&mut lock));
    is_told.is_err() || i32::from(lock.l_type) != libc::F_UNLCK
}

fn whole_file() -> libc::flock {
    let (l_type, l_whence) = (libc::F_WRLCK as libc::c_short, libc::SEEK_SET as libc::c_short);
    libc::flock { l_type, l_whence, l_start: 0, l_len: 0, l_pid: 0 }
}

#[cfg(test)]
mod tests;
