use std::os::fd::{AsFd as _, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use nix::errno::Errno;

use crate::{rootfs, sys};

const LANDLOCK_ABI: ABI = ABI::V6;
/// The writable devices. THREAT[RES-9]: `/dev/zero` is not among them, because a writable shared
/// mapping of it is memory that the kernel accounts to no process.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/full", "/dev/random", "/dev/urandom"];

/// Restricts this process to nothing: no files, no TCP ports, and no abstract sockets or signals
/// beyond its own descendants. Older kernels enforce the part that they support.
///
/// THREAT[ESC-3]: a guest could not signal even a process whose id leaked in.
pub(crate) fn deny_all() -> Result<(), Errno> {
    match empty_ruleset().and_then(RulesetCreated::restrict_self) {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
        Ok(_) => Err(Errno::ENOSYS),
        Err(_) => Err(Errno::last()),
    }
}

/// Denies signals and abstract sockets beyond this process's descendants, if the kernel supports
/// that. For a process whose forks have their own rules for files.
pub(crate) fn deny_signals() -> Result<(), Errno> {
    // A ruleset forbids moving files between folders (Refer) unless it allows that explicitly.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(LANDLOCK_ABI)))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(["/"], AccessFs::Refer)));
    ruleset.and_then(RulesetCreated::restrict_self).map(drop).map_err(|_| Errno::last())
}

/// Creates the ruleset for programs in a rootfs: all files can be read and executed, only their own
/// files written, and no TCP port but `port` connected to. See [`restrict`].
///
/// The user's directory is mounted later, in folders on the tmpfs `parents`. A rule for the
/// mount itself would not last, because each renewal mounts another file system.
pub(crate) fn for_programs(port: Option<u16>, parents: &OwnedFd) -> Result<OwnedFd, Errno> {
    let read = AccessFs::from_read(LANDLOCK_ABI);
    let all = AccessFs::from_all(LANDLOCK_ABI);
    let device = AccessFs::WriteFile | AccessFs::IoctlDev | read;
    let rules = empty_ruleset()
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(["/"], read)))
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(DEVICES, device)))
        .and_then(|ruleset| {
            ruleset.add_rules(path_beneath_rules([rootfs::BOX, rootfs::TEMPORARY], all))
        })
        .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(parents, all)))
        .and_then(|ruleset| match port {
            Some(port) => ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp)),
            None => Ok(ruleset),
        });
    let rules: Option<OwnedFd> = rules.map_err(|_| Errno::last())?.into();
    rules.ok_or(Errno::ENOSYS)
}

/// Fails if the kernel has no Landlock.
pub(crate) fn check_support() -> Result<(), Errno> {
    let rules: Option<OwnedFd> = empty_ruleset().map_err(|_| Errno::last())?.into();
    rules.map(drop).ok_or(Errno::ENOSYS)
}

pub(crate) fn restrict(rules: &OwnedFd) -> Result<(), Errno> {
    sys::landlock_restrict(rules.as_fd())
}

fn empty_ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(LANDLOCK_ABI)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(LANDLOCK_ABI)))
        .and_then(Ruleset::create)
}
