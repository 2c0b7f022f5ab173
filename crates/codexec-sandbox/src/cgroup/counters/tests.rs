use std::fs;

use super::*;

#[test]
fn an_open_counter_has_the_current_number() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("memory.oom_control");
    fs::write(&path, "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n").expect("written");
    let file = File::open(&path).expect("open");
    assert_eq!(number_after("oom_kill ", Some(&file)), 0);
    fs::write(&path, "oom_kill_disable 0\nunder_oom 0\noom_kill 12\n").expect("written");
    assert_eq!(number_after("oom_kill ", Some(&file)), 12);
}

#[test]
fn a_missing_counter_is_zero() {
    assert_eq!(number_after("max ", None), 0);
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("pids.events");
    fs::write(&path, "max.imposed 3\n").expect("written");
    assert_eq!(number_after("max ", File::open(&path).ok().as_ref()), 0);
}
