//! Requests to every running codexec: files in a folder that all of them watch.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use codexec_types::ServerName;

const RESTART: &str = "restart-";

pub(super) fn folder(home: &Path) -> std::io::Result<PathBuf> {
    let folder = home.join("control");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    Ok(folder)
}

pub(crate) fn ask_for_restart(home: &Path, name: &ServerName) -> std::io::Result<()> {
    let path = folder(home)?.join(format!("{RESTART}{name}"));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // The watchers react to IN_CLOSE_WRITE.
    file.write_all(b"\n")
}

/// Returns the servers to restart, from the paths that changed.
pub(super) fn restarts<'a>(
    folder: &'a Path,
    changed: impl Iterator<Item = &'a PathBuf>,
) -> Vec<String> {
    let names = changed.filter(|path| path.parent() == Some(folder));
    let names = names.filter_map(|path| path.file_name()?.to_str()?.strip_prefix(RESTART));
    names.map(str::to_owned).collect()
}
