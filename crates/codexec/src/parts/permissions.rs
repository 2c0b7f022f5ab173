//! Checks that only the user can write the state directory and `config.toml`, which decide what
//! codexec runs.

use std::path::Path;

use anyhow::bail;
use codexec_files::Exposure;
use codexec_types::GuestPaths;

/// THREAT[CFG-9]: anybody who can write to the state directory can approve servers and lower the
/// sandbox. Its files may already be planted, so a writable one is refused, not silently closed.
pub(super) fn check_state_dir(home: &Path) -> anyhow::Result<()> {
    let (Ok(metadata), shown) = (home.metadata(), home.display()) else { return Ok(()) };
    match Exposure::of(&metadata) {
        None => Ok(()),
        Some(Exposure::Foreign(owner)) => {
            bail!("{shown} belongs to user {owner}; set CODEXEC_HOME to a directory of yours")
        }
        Some(Exposure::Open(mode)) => bail!(
            "{shown} can be written by others (mode {mode:o}), who could make codexec run \
             anything; check its contents, then run `chmod 700 {shown}`"
        ),
    }
}

/// THREAT[CFG-9]: the same for `config.toml`. Symlinks are followed; a file of root is accepted.
pub(super) fn check_config_file(path: &Path) -> anyhow::Result<()> {
    let (Ok(metadata), shown) = (path.metadata(), path.display()) else { return Ok(()) };
    match Exposure::of(&metadata) {
        None | Some(Exposure::Foreign(0)) => Ok(()),
        Some(_) if !metadata.is_file() => Ok(()),
        Some(Exposure::Foreign(owner)) => {
            bail!(
                "{shown} belongs to user {owner}, who could change it; change its owner with chown"
            )
        }
        Some(Exposure::Open(mode)) => bail!(
            "{shown} can be written by others (mode {mode:o}); check its contents, then run \
             `chmod 600 {shown}`"
        ),
    }
}

/// THREAT[CFG-9]: a guest must not be able to write the settings.
pub(super) fn check_not_guest_writable(
    path: &Path,
    guest_paths: &GuestPaths,
) -> anyhow::Result<()> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let read_link = |link: &Path| std::fs::read_link(link).ok();
    match guest_paths.find_writable_dir(&absolute, &read_link) {
        None => Ok(()),
        Some(directory) => bail!(
            "{} is in {}, which code may write; move it, or remove that directory from \
             `files.allowed`",
            path.display(),
            directory.display()
        ),
    }
}
