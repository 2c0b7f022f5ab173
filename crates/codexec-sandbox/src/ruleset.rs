use std::os::fd::{AsFd as _, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use nix::errno::Errno;

use crate::{sys, tree};

const KNOWN: ABI = ABI::V6;
/// The devices that may be written. THREAT[RES-9]: `/dev/zero` is not among them, because a mapping
/// of it that can be written is shared memory that nobody counts.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/full", "/dev/random", "/dev/urandom"];

/// Landlock without a single rule: no file, no TCP port, no abstract socket and no signal
/// beyond this process's own descendants. Kernels that know fewer of these enforce those.
///
/// THREAT[ESC-3]: even a process id that leaked in could not be signalled.
pub(crate) fn deny_all() -> Result<(), Errno> {
    match nothing().and_then(RulesetCreated::restrict_self) {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
        Ok(_) => Err(Errno::ENOSYS),
        Err(_) => Err(Errno::last()),
    }
}

/// Landlock for a process whose forks have rules of their own for files: no signal and no abstract
/// socket beyond its descendants. Kernels that do not know these do without.
pub(crate) fn deny_signals() -> Result<(), Errno> {
    // Rules that say nothing of moving files from folder to folder forbid it.
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(KNOWN)))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(["/"], AccessFs::Refer)));
    ruleset.and_then(RulesetCreated::restrict_self).map(drop).map_err(|_| Errno::last())
}

/// The rules for programs in a room: everything may be read and run, only their own files
/// written, and no port reached but this one. For [`restrict`], in whichever process is to be
/// held to them.
///
/// A directory of the user's is mounted later, in folders that are made on `place`. A rule for the
/// mount itself would not last: each renewal is another file system.
pub(crate) fn for_programs(port: Option<u16>, place: &OwnedFd) -> Result<OwnedFd, Errno> {
    let read = AccessFs::from_read(KNOWN);
    let all = AccessFs::from_all(KNOWN);
    let device = AccessFs::WriteFile | AccessFs::IoctlDev | read;
    let rules = nothing()
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(["/"], read)))
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(DEVICES, device)))
        .and_then(|ruleset| {
            ruleset.add_rules(path_beneath_rules([tree::BOX, tree::TEMPORARY], all))
        })
        .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(place, all)))
        .and_then(|ruleset| match port {
            Some(port) => ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp)),
            None => Ok(ruleset),
        });
    let rules: Option<OwnedFd> = rules.map_err(|_| Errno::last())?.into();
    rules.ok_or(Errno::ENOSYS)
}

/// Fails where the kernel has no Landlock.
pub(crate) fn check() -> Result<(), Errno> {
    let rules: Option<OwnedFd> = nothing().map_err(|_| Errno::last())?.into();
    rules.map(drop).ok_or(Errno::ENOSYS)
}

pub(crate) fn restrict(rules: &OwnedFd) -> Result<(), Errno> {
    sys::landlock_restrict(rules.as_fd())
}

fn nothing() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(KNOWN)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(KNOWN)))
        .and_then(Ruleset::create)
}
