use super::*;

const V1: &str = "\
cache 15065088
rss 15151104
rss_huge 0
shmem 13078528
mapped_file 9977856
hierarchical_memory_limit 9223372036854771712
total_cache 12774719488
total_rss 935170048
total_shmem 1";
const V2: &str = "\
anon 1000000
file 70000000
kernel 900000
kernel_stack 16384
pagetables 90112
sock 4096
shmem 20000
file_mapped 0
anon_thp 0
slab_reclaimable 600000
slab_unreclaimable 100000
slab 700000";

#[test]
fn res_8_memory_is_what_processes_and_memory_file_systems_hold() {
    assert_eq!(held_bytes(V1, CgroupVersion::V1), 15_151_104 + 13_078_528);
    assert_eq!(held_bytes(V2, CgroupVersion::V2), 1_000_000 + 20_000 + 300_000);
}

#[test]
fn missing_or_invalid_fields_count_as_zero() {
    assert_eq!(held_bytes("anon 5\nfile 7", CgroupVersion::V2), 5);
    assert_eq!(held_bytes("", CgroupVersion::V1), 0);
    assert_eq!(held_bytes("rss many\nshmem 2", CgroupVersion::V1), 2);
}

#[test]
fn both_files_of_a_cgroup_are_read() {
    let group = tempfile::tempdir().unwrap();
    for (name, text) in [("memory.stat", V2), ("memory.current", "123456\n")] {
        std::fs::write(group.path().join(name), text).unwrap();
    }
    let gauge = MemoryGauge::open(group.path(), CgroupVersion::V2).unwrap();
    assert_eq!((gauge.read_used_bytes(), gauge.read_upper_bound()), (1_320_000, Some(123_456)));
    assert!(MemoryGauge::open(group.path(), CgroupVersion::V1).is_err());
}
