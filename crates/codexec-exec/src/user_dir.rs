//! A directory of the user's that a guest works in: the read-only lower layer of an overlay. What
//! the guest writes goes to an upper layer of ours, and from there into the directory.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use codexec_sandbox::{Mounter, Overlay, Wanted};
use codexec_types::{Changes, WorkingDir};
use rustix::fs::{self, CWD, Mode, OFlags, ResolveFlags};

use crate::ExecError;
use crate::files::{Commit, KeptFiles, Ledger, Listing, Moment, Tree, WorkspaceFiles, snapshot};
use crate::pool::Machine;
use crate::zygote::blocking;

pub(crate) struct UserDir {
    wanted: WorkingDir,
    machine: Arc<Machine>,
    target: Tree,
    /// What changes in the directory from here on, somebody else changes.
    since: Moment,
    ledger: Ledger,
    /// Which of the upper layers the guest writes to.
    layer: u32,
    /// What was in that layer after the last commit; `None` if it was too much to remember.
    committed: Option<WorkspaceFiles>,
}

impl UserDir {
    /// Opens the directory, and makes the lower layer of it.
    pub(crate) async fn open(
        wanted: &WorkingDir,
        machine: &Arc<Machine>,
    ) -> Result<(UserDir, Overlay, OwnedFd), ExecError> {
        let mounter = machine.mounter().await?;
        let (wanted, machine) = (wanted.clone(), Arc::clone(machine));
        blocking(move || {
            let cannot = |error: io::Error| {
                let path = wanted.found.path.display();
                ExecError::WorkingDir(format!("{path} cannot be shown to code: {error}"))
            };
            let lower = mounter.mount(&lower(&wanted)).map_err(cannot)?;
            let target = open_target(&wanted).map_err(cannot)?;
            let since = Moment::after_all_changes(target.root())?;
            let settings = &machine.settings.files;
            let overlay = Overlay {
                real_path: wanted.found.path.clone(),
                is_writable: wanted.is_writable,
                max_bytes: settings.max_bytes,
                max_files: settings.max_files,
            };
            let (ledger, committed) = (Ledger::default(), Some(WorkspaceFiles::new()));
            let dir = UserDir { wanted, machine, target, since, ledger, layer: 0, committed };
            Ok((dir, overlay, lower))
        })
        .await
    }

    /// Writes what the guest left in its layer into the directory. The guest must be dead, or
    /// must stand still. Blocks.
    pub(crate) fn commit(&mut self, layers: &OwnedFd, keep: &Path) -> Changes {
        let upper = self.upper(layers);
        upper.map_or_else(|error| not_committed(&error), |upper| self.commit_from(&upper, keep))
    }

    /// Does the same if the guest has written anything since the last commit.
    pub(crate) fn commit_news(&mut self, layers: &OwnedFd, keep: &Path) -> io::Result<Changes> {
        let upper = self.upper(layers)?;
        if self.committed.is_some() && snapshot(&upper) == self.committed {
            return Ok(Changes::default());
        }
        Ok(self.commit_from(&upper, keep))
    }

    fn upper(&self, layers: &OwnedFd) -> io::Result<Tree> {
        Tree::new(layers.try_clone()?).subtree(Path::new(&upper_name(self.layer)))
    }

    fn commit_from(&mut self, upper: &Tree, keep: &Path) -> Changes {
        let settings = &self.machine.settings.files;
        let found = &self.wanted.found;
        let commit = Commit {
            upper,
            target: &self.target,
            since: self.since,
            ledger: &mut self.ledger,
            let_through: &settings.let_through,
            owner: codexec_sandbox::is_root().then_some((found.uid, found.gid)),
            max_bytes: settings.max_bytes,
            kept: KeptFiles::new(keep),
            listing: Listing::default(),
        };
        let changes = commit.run();
        self.committed = snapshot(upper);
        changes
    }

    /// Makes the next layer, and returns its number and the new lower one. Entries that the user's
    /// directory does not have move along, so the guest goes on seeing them.
    ///
    /// THREAT[FIL-7]: the guest cannot see the layer yet, so whatever changes from here on, somebody
    /// else changes. Blocks.
    pub(crate) fn next_layer(
        &mut self,
        layers: Option<&OwnedFd>,
        mounter: &Mounter,
    ) -> io::Result<(u32, OwnedFd)> {
        if let Some(layers) = layers {
            let layers = Tree::new(layers.try_clone()?);
            let (old, new) = (upper_name(self.layer), upper_name(self.layer + 1));
            let (old, new) = (Path::new(&old), Path::new(&new));
            let guest = layers.find(old)?.map_or((0, 0), |upper| upper.owner);
            codexec_sandbox::as_file_user(guest, || {
                layers.make_folder(new, old)?;
                self.ledger.move_held(&layers.subtree(old)?, &layers.subtree(new)?)
            })?;
            self.committed = snapshot(&layers.subtree(new)?);
        }
        self.layer += 1;
        let lower = mounter.mount(&lower(&self.wanted))?;
        self.since = Moment::after_all_changes(self.target.root())?;
        Ok((self.layer, lower))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.wanted.found.path
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// What is told when nothing could be committed. A session tries again after its next cell.
pub(crate) fn not_committed(error: &io::Error) -> Changes {
    let mut listing = Listing::default();
    listing.failed(Path::new("."), error);
    listing.into_changes()
}

/// The name of an upper layer in the file system of layers.
fn upper_name(layer: u32) -> String {
    format!("upper-{layer}")
}

fn lower(wanted: &WorkingDir) -> Wanted {
    let found = &wanted.found;
    Wanted {
        path: found.path.clone(),
        device: found.device,
        inode: found.inode,
        owner: codexec_sandbox::is_root().then_some((found.uid, found.gid)),
    }
}

/// THREAT[FIL-1]: what was judged is what is written to, whatever happened in between. From here
/// on the directory is known by its descriptor: whoever renames it takes the guest's files along.
fn open_target(wanted: &WorkingDir) -> io::Result<Tree> {
    let found = &wanted.found;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = fs::openat2(CWD, &found.path, flags, Mode::empty(), resolve)?;
    let stat = fs::fstat(&opened)?;
    if (stat.st_dev, stat.st_ino) != (found.device, found.inode) {
        return Err(io::ErrorKind::StaleNetworkFileHandle.into());
    }
    Ok(Tree::new(opened))
}
