use super::*;

const SHELL: i32 = 2;

/// `(id, parent, start)` of each.
fn processes(all: &[(i32, i32, u64)]) -> Processes {
    Processes(
        all.iter()
            .map(|(id, parent, start)| {
                (*id, Process { parent: *parent, start: *start, state: b'S' })
            })
            .collect(),
    )
}

fn new_ones(before: &Processes, now: &Processes) -> Vec<i32> {
    now.new_since(before, SHELL).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn only_what_the_cell_has_started_is_new() {
    let before = processes(&[(1, 0, 1), (2, 1, 1), (10, 2, 5)]);
    let now = processes(&[
        (1, 0, 1),
        (2, 1, 1),
        // A job of an earlier cell, and what it starts.
        (10, 2, 5),
        (20, 10, 9),
        (21, 20, 9),
        // The cell's own, its child, and an orphan.
        (30, 2, 9),
        (31, 30, 9),
        (32, 1, 9),
    ]);
    assert_eq!(new_ones(&before, &now), [30, 31, 32]);
}

#[test]
fn an_id_that_is_used_again_is_new() {
    let before = processes(&[(1, 0, 1), (2, 1, 1), (10, 2, 5)]);
    let now = processes(&[(1, 0, 1), (2, 1, 1), (10, 2, 6)]);
    assert_eq!(new_ones(&before, &now), [10]);
}

#[test]
fn parents_in_a_circle_end() {
    let now = processes(&[(10, 11, 1), (11, 10, 1)]);
    assert_eq!(new_ones(&Processes::default(), &now), [10, 11]);
}

#[test]
fn this_process_is_seen_with_its_parent() {
    let id = i32::try_from(std::process::id()).expect("an id");
    let parent = i32::try_from(std::os::unix::process::parent_id()).expect("an id");
    let now = Processes::now();
    assert_eq!(now.0.get(&id).map(|process| process.parent), Some(parent));
}
