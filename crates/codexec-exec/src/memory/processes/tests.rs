use super::*;

const STATUS: &str = "Name:\tpython3\nVmPeak:\t  728452 kB\nRssAnon:\t    6324 kB\n\
    RssFile:\t   34040 kB\nRssShmem:\t     100 kB\nVmPTE:\t     376 kB\nVmSwap:\t      24 kB\n\
    HugetlbPages:\t    2048 kB\n";
const ROLLUP: &str = "00400000-7fff [rollup]\nRss:             1000 kB\nPss:              700 kB\n\
    Pss_Anon:         300 kB\nPss_File:         350 kB\nPss_Shmem:         50 kB\n\
    Shared_Hugetlb:      0 kB\nPrivate_Hugetlb:  2048 kB\nSwap:  90 kB\nSwapPss:            30 kB\n";

#[test]
fn res_9_all_memory_that_a_process_can_have_counts() {
    let expected = Held { own_bytes: (6324 + 24 + 376 + 2048) << 10, shared_bytes: 100 << 10 };
    assert_eq!(held(STATUS), expected);
    let expected = Held { own_bytes: (300 + 30 + 2048 + 8) << 10, shared_bytes: 50 << 10 };
    assert_eq!(share(ROLLUP, 8 << 10), Some(expected));
}

#[test]
fn what_cannot_be_read_is_no_share() {
    assert_eq!(share("", 0), None);
    assert_eq!(held(""), Held::default());
}

#[test]
fn res_9_sockets_beyond_the_free_ones_count_as_full() {
    assert_eq!(sockets("sockets: used 127\nTCP: inuse 0 orphan 0\n"), 127);
    assert_eq!(sockets("nothing of the kind"), 0);
    // One process without memory, in this process's own network namespace.
    let none = std::iter::empty();
    assert_eq!(total(none, &[], 0), 0);
}

#[test]
fn files_that_are_mapped_are_disk_and_not_memory() {
    let one = Held { own_bytes: 10, shared_bytes: 100 };
    assert_eq!(total([one, one].into_iter(), &[], 150), 70);
    assert_eq!(total([one].into_iter(), &[], 150), 10);
}

#[test]
fn a_process_of_our_own_is_counted_the_same_in_both_ways() {
    let own = i32::try_from(std::process::id()).unwrap();
    let (rough, exact) = (held(&about(own, "status")), about(own, "smaps_rollup"));
    let exact = share(&exact, page_tables(own)).expect("our own process can be read");
    let difference = rough.own_bytes.abs_diff(exact.own_bytes);
    assert!(difference < rough.own_bytes / 2, "{rough:?} {exact:?}");
}
