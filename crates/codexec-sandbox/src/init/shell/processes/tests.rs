use super::*;

const SHELL: i32 = 2;

/// Makes a table from `(id, parent, start)` of each process.
fn processes(all: &[(i32, i32, u64)]) -> ProcessTable {
    ProcessTable(
        all.iter()
            .map(|(id, parent, start)| {
                (*id, Process { parent: *parent, start: *start, state: b'S' })
            })
            .collect(),
    )
}

fn new_ones(before: &ProcessTable, now: &ProcessTable) -> Vec<i32> {
    now.new_since(before, SHELL).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn only_processes_that_the_cell_has_started_are_new() {
    let before = processes(&[(1, 0, 1), (2, 1, 1), (10, 2, 5)]);
    let now = processes(&[
        (1, 0, 1),
        (2, 1, 1),
        // A job of an earlier cell, and its descendants.
        (10, 2, 5),
        (20, 10, 9),
        (21, 20, 9),
        // A process of the cell, its child, and an orphan.
        (30, 2, 9),
        (31, 30, 9),
        (32, 1, 9),
    ]);
    assert_eq!(new_ones(&before, &now), [30, 31, 32]);
}

#[test]
fn a_reused_id_is_new() {
    let before = processes(&[(1, 0, 1), (2, 1, 1), (10, 2, 5)]);
    let now = processes(&[(1, 0, 1), (2, 1, 1), (10, 2, 6)]);
    assert_eq!(new_ones(&before, &now), [10]);
}

#[test]
fn a_cycle_of_parents_ends() {
    let now = processes(&[(10, 11, 1), (11, 10, 1)]);
    assert_eq!(new_ones(&ProcessTable::default(), &now), [10, 11]);
}

#[test]
fn the_table_has_this_process_with_its_parent() {
    let id = i32::try_from(std::process::id()).expect("an id");
    let parent = i32::try_from(std::os::unix::process::parent_id()).expect("an id");
    let now = ProcessTable::read();
    assert_eq!(now.0.get(&id).map(|process| process.parent), Some(parent));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own process")]
fn a_process_without_children_has_none() {
    use std::process::{Command, Stdio};
    let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a child");
    let id = i32::try_from(cat.id()).expect("an id");
    assert!(has_only_child(id, None));
    assert!(!has_only_child(id, Some(id)));
    cat.kill().expect("killed");
    cat.wait().expect("it ends");
    assert!(!has_only_child(id, None), "there is no such process");
}
