//! Requests to every running codexec: files in a folder that all of them watch.

use std::path::{Path, PathBuf};

use codexec_files::private_files;
use codexec_types::ServerName;

const RESTART: &str = "restart-";

pub(super) fn folder(home: &Path) -> std::io::Result<PathBuf> {
    let folder = home.join("control");
    private_files::make_folder(&folder)?;
    Ok(folder)
}

pub(crate) fn ask_for_restart(home: &Path, name: &ServerName) -> std::io::Result<()> {
    let path = folder(home)?.join(format!("{RESTART}{name}"));
    // The file stays empty: the watchers react to IN_CLOSE_WRITE, which closing it causes.
    private_files::open_to_write(&path).map(drop)
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
