//! Watches files for changes, including files and folders that do not exist yet.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::unix::AsyncFd;

/// A save touches the file several times.
const DEBOUNCE: Duration = Duration::from_millis(150);

/// An inotify watch on the folders of files. Folders are watched because editors replace files more
/// often than they rewrite them.
pub(crate) struct FileWatcher {
    inotify: AsyncFd<InotifyFd>,
    files: Vec<PathBuf>,
    /// Folders in which every change counts.
    folders: Vec<PathBuf>,
    folders_by_descriptor: HashMap<WatchDescriptor, PathBuf>,
    /// The names that count in each watched folder.
    names_by_folder: HashMap<PathBuf, WatchedNames>,
}

#[derive(Default)]
struct WatchedNames {
    names: HashSet<OsString>,
    is_all: bool,
}

struct InotifyFd(Inotify);

impl AsRawFd for InotifyFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl FileWatcher {
    /// Must be called inside a tokio runtime.
    pub(crate) fn new(files: Vec<PathBuf>, folders: Vec<PathBuf>) -> io::Result<FileWatcher> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "what replaces it is unsafe code, for types that change their descriptor; ours is owned and stays"
        )]
        let inotify = AsyncFd::new(InotifyFd(inotify))?;
        let (folders_by_descriptor, names_by_folder) = (HashMap::new(), HashMap::new());
        let mut watch =
            FileWatcher { inotify, files, folders, folders_by_descriptor, names_by_folder };
        watch.update_watches();
        Ok(watch)
    }

    /// Waits for a change and a short pause. Returns the changed paths, which may include a folder
    /// on the way to a file.
    pub(crate) async fn next_changes(&mut self) -> io::Result<HashSet<PathBuf>> {
        let mut changed = HashSet::new();
        while changed.is_empty() {
            let mut ready = self.inotify.readable().await?;
            let events = ready.get_inner().0.read_events();
            match events {
                Ok(events) => {
                    drop(ready);
                    self.collect_changes(events, &mut changed);
                }
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
        tokio::time::sleep(DEBOUNCE).await;
        while let Ok(events) = self.inotify.get_ref().0.read_events() {
            self.collect_changes(events, &mut changed);
        }
        // Before the caller reads the files, so that no change in between is missed.
        self.update_watches();
        Ok(changed)
    }

    fn collect_changes(&self, events: Vec<InotifyEvent>, changed: &mut HashSet<PathBuf>) {
        for event in events {
            let folder = self.folders_by_descriptor.get(&event.wd);
            match (folder, event.name) {
                (Some(folder), Some(name)) => {
                    let counts = |names: &WatchedNames| names.is_all || names.names.contains(&name);
                    if self.names_by_folder.get(folder).is_some_and(counts) {
                        changed.insert(folder.join(name));
                    }
                }
                // The folder itself changed, or the event queue overflowed.
                (Some(folder), None) => {
                    let is_closed = AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF;
                    if event.mask.intersects(is_closed) {
                        changed.insert(folder.clone());
                    }
                }
                (None, _) if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) => {
                    changed.insert(PathBuf::new());
                }
                (None, _) => {}
            }
        }
    }

    /// Adds and removes watches to match what exists now.
    fn update_watches(&mut self) {
        self.names_by_folder.clear();
        for folder in &self.folders {
            if folder.is_dir() {
                self.names_by_folder.entry(folder.clone()).or_default().is_all = true;
            } else {
                watch_path(&mut self.names_by_folder, folder);
            }
        }
        for file in &self.files {
            watch_path(&mut self.names_by_folder, file);
            // A write to a symlink's target does not touch the symlink's folder.
            if let Ok(real) = file.canonicalize()
                && real != *file
            {
                watch_path(&mut self.names_by_folder, &real);
            }
        }
        let flags = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        let inotify = &self.inotify.get_ref().0;
        let mut watched = HashMap::new();
        for folder in self.names_by_folder.keys() {
            match inotify.add_watch(folder, flags) {
                Ok(descriptor) => {
                    watched.insert(descriptor, folder.clone());
                }
                Err(error) => {
                    tracing::warn!(%error, folder = %folder.display(), "cannot watch this folder");
                }
            }
        }
        for descriptor in
            self.folders_by_descriptor.keys().filter(|known| !watched.contains_key(known))
        {
            // Fails if the folder is gone, and its watch with it.
            let _ = inotify.rm_watch(*descriptor);
        }
        self.folders_by_descriptor = watched;
    }
}

/// Watches the nearest existing folder for the name that leads to the file.
fn watch_path(names_by_folder: &mut HashMap<PathBuf, WatchedNames>, file: &Path) {
    let mut path = file;
    while let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
        if folder.is_dir() {
            names_by_folder.entry(folder.to_owned()).or_default().names.insert(name.to_owned());
            return;
        }
        path = folder;
    }
}

#[cfg(test)]
mod tests;
