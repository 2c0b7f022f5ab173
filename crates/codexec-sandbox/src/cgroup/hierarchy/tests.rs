use super::*;

const HYBRID: &str = "\
25 1 0:22 / /sys rw - sysfs sysfs rw
30 25 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
31 25 0:27 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
32 25 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
const UNIFIED: &str = "35 25 0:30 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw";

#[track_caller]
fn check(mountinfo: &str, own: &str, has_controllers: bool, expected: &str) {
    let hierarchy = choose(mountinfo, own, |_| has_controllers, "codexec-7");
    let actual = hierarchy.map_or("none".to_owned(), |found| {
        format!("{:?} {} {}", found.version, found.memory.display(), found.pids.display())
    });
    assert_eq!(actual, expected);
}

#[test]
fn directories_are_chosen_in_v1_v2_and_hybrid_hierarchies() {
    check(
        HYBRID,
        "8:pids:/\n4:memory:/jobs/a\n0::/",
        false,
        "V1 /sys/fs/cgroup/memory/jobs/a/codexec-7 /sys/fs/cgroup/pids/codexec-7",
    );
    check(
        UNIFIED,
        "0::/user.slice/app.scope",
        true,
        "V2 /sys/fs/cgroup/user.slice/codexec-7 /sys/fs/cgroup/user.slice/codexec-7",
    );
    check(UNIFIED, "0::/", true, "V2 /sys/fs/cgroup/codexec-7 /sys/fs/cgroup/codexec-7");
    check(UNIFIED, "0::/user.slice", false, "none");
    check("", "0::/", true, "none");
}

#[test]
fn a_mount_of_a_part_of_a_hierarchy_is_supported() {
    let container = "\
30 25 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
31 25 0:27 /docker/abc /sys/fs/cgroup/cpu,pids ro - cgroup cgroup rw,cpu,pids";
    check(
        container,
        "8:cpu,pids:/docker/abc\n4:memory:/docker/abc",
        false,
        "V1 /sys/fs/cgroup/memory/codexec-7 /sys/fs/cgroup/cpu,pids/codexec-7",
    );
}
