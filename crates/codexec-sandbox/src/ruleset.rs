use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};
use nix::errno::Errno;

/// Landlock without a single rule: no file, no TCP port, no abstract socket and no signal
/// beyond this process's own descendants. Kernels that know fewer of these enforce those.
///
/// THREAT[ESC-3]: even a process id that leaked in could not be signalled.
pub(crate) fn deny_all() -> Result<(), Errno> {
    let abi = ABI::V6;
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(abi)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    match ruleset {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
        Ok(_) => Err(Errno::ENOSYS),
        Err(_) => Err(Errno::last()),
    }
}
