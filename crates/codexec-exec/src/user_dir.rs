//! A user's directory that a guest works in: the read-only lower layer of an overlay. The guest
//! writes to an upper layer, which the host commits to the directory.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use codexec_sandbox::{MountRequest, Mounter, Overlay};
use codexec_types::{FileChanges, WorkingDir};
use rustix::fs::{self, CWD, Mode, OFlags, ResolveFlags};

use crate::ExecError;
use crate::files::{
    ArtifactCopies, ChangeReport, Commit, CommitLedger, CommitProgress, DirTree, FileTime,
    HeldBackRules, WorkspaceFiles, find_location_reason, snapshot,
};
use crate::pool::HostResources;
use crate::zygote::run_blocking;

pub(crate) struct UserDir {
    wanted: WorkingDir,
    resources: Arc<HostResources>,
    target: DirTree,
    /// Changes in the directory after this moment were made by somebody else.
    since: FileTime,
    ledger: CommitLedger,
    /// The number of the upper layer that the guest writes to.
    layer: u32,
    /// The entries of that layer after the last commit; `None` if there were too many to remember.
    committed: Option<WorkspaceFiles>,
}

impl UserDir {
    /// Opens the directory, mounts its lower layer, and sends overlay and mount over
    /// `overlay_sink`.
    pub(crate) async fn open(
        wanted: &WorkingDir,
        resources: &Arc<HostResources>,
        mounter: Arc<Mounter>,
        overlay_sink: OwnedFd,
    ) -> Result<UserDir, ExecError> {
        let (wanted, resources) = (wanted.clone(), Arc::clone(resources));
        run_blocking(move || {
            let cannot = |error: io::Error| {
                let path = wanted.found.path.display();
                ExecError::WorkingDir(format!("{path} cannot be mounted: {error}"))
            };
            check_location(&wanted, &resources.settings.files.let_through)?;
            let lower = mounter.mount(&lower_mount(&wanted)).map_err(cannot)?;
            // Fails if no worker needs the mount, or if it has died, which is noticed elsewhere.
            let overlay = UserDir::overlay(&wanted, &resources);
            let _ = codexec_sandbox::send_packet(overlay_sink.as_fd(), &overlay, &[lower.as_fd()]);
            let target = open_target(&wanted).map_err(cannot)?;
            let since = FileTime::after_all_changes(target.root())?;
            let (ledger, committed) = (CommitLedger::default(), Some(WorkspaceFiles::new()));
            Ok(UserDir { wanted, resources, target, since, ledger, layer: 0, committed })
        })
        .await
    }

    /// Returns the overlay through which a guest sees the directory.
    pub(crate) fn overlay(wanted: &WorkingDir, resources: &HostResources) -> Overlay {
        Overlay {
            real_path: wanted.found.path.clone(),
            is_writable: wanted.is_writable,
            limits: resources.layer_limits(),
        }
    }

    /// True if the guest's upper layer has no entries. The layer is a tmpfs, so this does not wait
    /// for a disk.
    pub(crate) fn is_unchanged(&self, layers: &OwnedFd) -> bool {
        let upper = layers
            .try_clone()
            .and_then(|layers| DirTree::new(layers).open_dir(Path::new(&upper_name(self.layer))));
        upper.is_ok_and(|upper| crate::files::is_empty(&upper))
    }

    /// Commits the guest's upper layer to the directory. The guest must be dead or frozen. Blocks.
    pub(crate) fn commit(&mut self, layers: &OwnedFd, keep: &Path) -> FileChanges {
        let upper = self.upper(layers);
        upper.map_or_else(
            |error| report_failed_commit(&error),
            |upper| self.commit_from(&upper, keep),
        )
    }

    /// Commits the upper layer if the guest has written anything since the last commit. Blocks.
    pub(crate) fn commit_news(&mut self, layers: &OwnedFd, keep: &Path) -> io::Result<FileChanges> {
        let upper = self.upper(layers)?;
        if self.committed.is_some() && snapshot(&upper) == self.committed {
            return Ok(FileChanges::default());
        }
        Ok(self.commit_from(&upper, keep))
    }

    fn upper(&self, layers: &OwnedFd) -> io::Result<DirTree> {
        DirTree::new(layers.try_clone()?).open_subtree(Path::new(&upper_name(self.layer)))
    }

    fn commit_from(&mut self, upper: &DirTree, keep: &Path) -> FileChanges {
        if upper.list(Path::new("")).is_ok_and(|entries| entries.is_empty()) {
            return FileChanges::default();
        }
        let settings = &self.resources.settings.files;
        let found = &self.wanted.found;
        let commit = Commit {
            upper,
            target: &self.target,
            since: self.since,
            ledger: &mut self.ledger,
            held_back: HeldBackRules::new(&self.target, &settings.let_through),
            owner: codexec_sandbox::is_root().then_some((found.uid, found.gid)),
            max_bytes: settings.max_bytes,
            copies: ArtifactCopies::new(keep),
            report: ChangeReport::default(),
            progress: CommitProgress::default(),
        };
        let changes = commit.run();
        self.committed = snapshot(upper);
        changes
    }

    /// Prepares the next upper layer and a new lower mount, and returns the layer's number. Entries
    /// that are only in the old upper layer are moved along, so that the guest still sees them.
    /// Blocks. Returns `None`, and moves nothing, if the guest has left no room for the folders of
    /// the moved entries.
    ///
    /// THREAT[FIL-7]: the guest cannot see the layer yet, so all changes from here on are somebody
    /// else's.
    pub(crate) fn next_layer(
        &mut self,
        layers: Option<&OwnedFd>,
        mounter: &Mounter,
    ) -> io::Result<Option<(u32, OwnedFd)>> {
        if let Some(layers) = layers {
            let layers = DirTree::new(layers.try_clone()?);
            let (old, new) = (upper_name(self.layer), upper_name(self.layer + 1));
            let (old, new) = (Path::new(&old), Path::new(&new));
            let guest = layers.find(old)?.map_or((0, 0), |upper| upper.owner);
            let made = codexec_sandbox::run_as_file_user(guest, || {
                layers.make_folder(new, old)?;
                let (old, new) = (layers.open_subtree(old)?, layers.open_subtree(new)?);
                self.ledger.make_held_folders(&old, &new)?;
                io::Result::Ok((old, new))
            });
            let (old, new) = match made {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(None),
                made => made?,
            };
            codexec_sandbox::run_as_file_user(guest, || self.ledger.move_held(&old, &new))?;
            self.committed = snapshot(&new);
        }
        self.layer += 1;
        let lower = mounter.mount(&lower_mount(&self.wanted))?;
        self.since = FileTime::after_all_changes(self.target.root())?;
        Ok(Some((self.layer, lower)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.wanted.found.path
    }

    pub(crate) fn resources(&self) -> &HostResources {
        &self.resources
    }
}

/// Returns the report for a commit that failed. A session tries again after its next cell.
pub(crate) fn report_failed_commit(error: &io::Error) -> FileChanges {
    let mut report = ChangeReport::default();
    report.add_failed(Path::new("."), error);
    report.into_changes()
}

/// Returns the name of an upper layer in the directory of layers.
fn upper_name(layer: u32) -> String {
    format!("upper-{layer}")
}

fn lower_mount(wanted: &WorkingDir) -> MountRequest {
    let found = &wanted.found;
    MountRequest {
        path: found.path.clone(),
        device: found.device,
        inode: found.inode,
        owner: codexec_sandbox::is_root().then_some((found.uid, found.gid)),
    }
}

/// Opens the directory to write to.
///
/// THREAT[FIL-11]: nothing that programs obey can be written by working inside of it.
fn check_location(wanted: &WorkingDir, let_through: &[String]) -> Result<(), ExecError> {
    let path = &wanted.found.path;
    let Ok(inside) = path.strip_prefix(&wanted.allowed) else { return Ok(()) };
    if !wanted.is_writable || inside.as_os_str().is_empty() {
        return Ok(());
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let allowed = fs::open(&wanted.allowed, flags, Mode::empty()).map_err(io::Error::from)?;
    let allowed = DirTree::new(allowed);
    match find_location_reason(&allowed, inside, let_through) {
        None => Ok(()),
        Some(reason) => Err(ExecError::WorkingDir(format!(
            "code may not write in {}: {reason}; work in a directory above it, or name it in \
             `files.let-through`",
            path.display()
        ))),
    }
}

/// THREAT[FIL-1]: the directory that the policy admitted is the one written to, whatever happened
/// in between. From here on it is identified by its descriptor, so a rename moves the guest's files
/// along.
fn open_target(wanted: &WorkingDir) -> io::Result<DirTree> {
    let found = &wanted.found;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = fs::openat2(CWD, &found.path, flags, Mode::empty(), resolve)?;
    let stat = fs::fstat(&opened)?;
    if (stat.st_dev, stat.st_ino) != (found.device, found.inode) {
        return Err(io::ErrorKind::StaleNetworkFileHandle.into());
    }
    Ok(DirTree::new(opened))
}
