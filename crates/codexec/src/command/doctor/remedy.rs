//! What the user can do about a missing layer of the sandbox.

use std::path::Path;

use codexec_sandbox::Layer;

/// Returns what to do about a layer that is missing here.
pub(super) fn remedy(layer: Layer, program: &Path) -> String {
    match layer {
        Layer::User
        | Layer::Pid
        | Layer::Mount
        | Layer::Network
        | Layer::Ipc
        | Layer::Uts
        | Layer::CgroupNamespace
        | Layer::Root => user_namespace_remedy(program).unwrap_or_else(|| {
            "the kernel must allow user namespaces: CONFIG_USER_NS and \
             kernel.unprivileged_userns_clone=1"
                .to_owned()
        }),
        Layer::Landlock => "use Linux 6.12 or newer with landlock in the kernel's `lsm=` list; \
                            5.13 has a part of it"
            .to_owned(),
        Layer::Seccomp => "the kernel needs CONFIG_SECCOMP_FILTER; a container must not forbid \
                           the system call seccomp"
            .to_owned(),
        Layer::Capabilities | Layer::NoNewPrivileges | Layer::Rlimits => {
            "every Linux from 5.13 on has it; if this is a container, its profile forbids it"
                .to_owned()
        }
        Layer::Cgroup => "codexec counts memory by itself instead, which is slower; as a plain \
                          user, start it with `systemd-run --user --scope codexec ..` to get \
                          cgroups"
            .to_owned(),
    }
}

/// Returns why the kernel refuses user namespaces here, and how to allow them.
pub(super) fn user_namespace_remedy(program: &Path) -> Option<String> {
    let is_set = |path: &str, value: &str| {
        std::fs::read_to_string(Path::new(path)).is_ok_and(|text| text.trim() == value)
    };
    if is_set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        let program = program.display();
        return Some(format!(
            "AppArmor denies user namespaces to programs without a profile, as on Ubuntu 23.10 \
             and newer. Write this to /etc/apparmor.d/codexec, then run `sudo apparmor_parser -r \
             /etc/apparmor.d/codexec`:\n\n  abi <abi/4.0>,\n  include <tunables/global>\n  \
             profile codexec {program} flags=(unconfined) {{\n    userns,\n  }}\n"
        ));
    }
    if is_set("/proc/sys/user/max_user_namespaces", "0") {
        let remedy = "user namespaces are off here: `sudo sysctl user.max_user_namespaces=10000`";
        return Some(remedy.to_owned());
    }
    if is_set("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        let remedy = "user namespaces are off for plain users: `sudo sysctl \
                      kernel.unprivileged_userns_clone=1`";
        return Some(remedy.to_owned());
    }
    if Path::new("/.dockerenv").exists() {
        let remedy = "in Docker, namespaces need --security-opt seccomp=unconfined \
                      --security-opt apparmor=unconfined --security-opt systempaths=unconfined";
        return Some(remedy.to_owned());
    }
    None
}
