//! Our own directory and settings decide what runs: nobody but the user may write them.

use std::path::Path;

use anyhow::bail;
use codexec_gateway::Exposure;
use codexec_types::GuestPaths;

/// THREAT[CFG-9]: whoever can write in our directory approves servers and lowers the sandbox. What
/// is in it may be planted already, so it is refused and not closed in silence.
pub(super) fn check_folder(home: &Path) -> anyhow::Result<()> {
    let (Ok(about), shown) = (home.metadata(), home.display()) else { return Ok(()) };
    match Exposure::of(&about) {
        None => Ok(()),
        Some(Exposure::Foreign(owner)) => {
            bail!("{shown} belongs to user {owner}; set CODEXEC_HOME to a directory of yours")
        }
        Some(Exposure::Open(mode)) => bail!(
            "{shown} can be written by others (mode {mode:o}), who could make codexec run anything; \
             look through what is in it, then close it with `chmod 700 {shown}`"
        ),
    }
}

/// THREAT[CFG-9]: the same for `config.toml`. A link is followed; root's file is as good as ours.
pub(super) fn check_file(path: &Path) -> anyhow::Result<()> {
    let (Ok(about), shown) = (path.metadata(), path.display()) else { return Ok(()) };
    match Exposure::of(&about) {
        None | Some(Exposure::Foreign(0)) => Ok(()),
        Some(_) if !about.is_file() => Ok(()),
        Some(Exposure::Foreign(owner)) => {
            bail!("{shown} belongs to user {owner}, who could change it; make it yours")
        }
        Some(Exposure::Open(mode)) => bail!(
            "{shown} can be written by others (mode {mode:o}); look through it, then close it with \
             `chmod 600 {shown}`"
        ),
    }
}

/// THREAT[CFG-9]: settings that guests may write would be theirs.
pub(super) fn check_not_guests(path: &Path, guest_paths: &GuestPaths) -> anyhow::Result<()> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let read_link = |link: &Path| std::fs::read_link(link).ok();
    match guest_paths.directory_of(&whole, &read_link) {
        None => Ok(()),
        Some(directory) => bail!(
            "{} lies in {}, where code may write; move it, or take that directory out of \
             `files.allowed`",
            path.display(),
            directory.display()
        ),
    }
}
