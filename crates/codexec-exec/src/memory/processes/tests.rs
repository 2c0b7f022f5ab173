use super::*;

const STATUS: &str = "Name:\tpython3\nVmPeak:\t  728452 kB\nRssAnon:\t    6324 kB\n\
    RssFile:\t   34040 kB\nRssShmem:\t     100 kB\nVmPTE:\t     376 kB\nVmSwap:\t      24 kB\n\
    HugetlbPages:\t    2048 kB\n";
const ROLLUP: &str = "00400000-7fff [rollup]\nRss:             1000 kB\nPss:              700 kB\n\
    Pss_Anon:         300 kB\nPss_File:         350 kB\nPss_Shmem:         50 kB\n\
    Shared_Hugetlb:      0 kB\nPrivate_Hugetlb:  2048 kB\nSwap:  90 kB\nSwapPss:            30 kB\n";

#[test]
fn res_9_all_memory_that_a_process_can_have_counts() {
    let expected =
        ProcessMemory { own_bytes: (6324 + 24 + 376 + 2048) << 10, shared_bytes: 100 << 10 };
    assert_eq!(parse_status(STATUS), expected);
    let expected = ProcessMemory { own_bytes: (300 + 30 + 2048 + 8) << 10, shared_bytes: 50 << 10 };
    assert_eq!(parse_smaps_rollup(ROLLUP, 8 << 10), Some(expected));
}

#[test]
fn unreadable_files_count_as_missing() {
    assert_eq!(parse_smaps_rollup("", 0), None);
    assert_eq!(parse_status(""), ProcessMemory::default());
}

#[test]
fn res_9_sockets_beyond_the_free_ones_count_as_full() {
    assert_eq!(parse_socket_count("sockets: used 127\nTCP: inuse 0 orphan 0\n"), 127);
    assert_eq!(parse_socket_count("nothing of the kind"), 0);
    // One process without memory, in this process's own network namespace.
    let none = std::iter::empty();
    assert_eq!(sum_memory(none, &[], 0), 0);
}

#[test]
fn files_that_are_mapped_are_disk_and_not_memory() {
    let one = ProcessMemory { own_bytes: 10, shared_bytes: 100 };
    assert_eq!(sum_memory([one, one].into_iter(), &[], 150), 70);
    assert_eq!(sum_memory([one].into_iter(), &[], 150), 10);
}

#[test]
fn both_counts_agree_for_one_process() {
    let own = i32::try_from(std::process::id()).unwrap();
    let (rough, exact) =
        (parse_status(&read_proc_file(own, "status")), read_proc_file(own, "smaps_rollup"));
    let exact = parse_smaps_rollup(&exact, read_page_table_bytes(own))
        .expect("our own process can be read");
    let difference = rough.own_bytes.abs_diff(exact.own_bytes);
    assert!(difference < rough.own_bytes / 2, "{rough:?} {exact:?}");
}
