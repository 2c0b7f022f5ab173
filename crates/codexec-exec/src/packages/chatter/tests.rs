use std::sync::Mutex;

use super::*;

#[test]
fn what_is_kept_and_told_is_bounded_and_whole() {
    let told = Mutex::new(Vec::new());
    let tell = |line: &str| told.lock().expect("unpoisoned").push(line.to_owned());
    let mut chatter = Chatter::default();
    chatter.add(Stream::Out, "Collecting s", &tell);
    chatter.add(Stream::Out, "ix\n\n\x1b[1mDone\n", &tell);
    assert_eq!(*told.lock().expect("unpoisoned"), ["Collecting six", "[1mDone"]);
    for _ in 0..10_000 {
        chatter.add(Stream::Err, &format!("{}\n", "é".repeat(500)), &tell);
    }
    let told = told.lock().expect("unpoisoned");
    assert_eq!(told.len(), MAX_TOLD);
    assert!(told.iter().all(|line| line.chars().count() <= LINE_CHARS));
    assert!(chatter.err.text.len() <= 2 * KEPT_BYTES && chatter.text().contains("[..]"));
}

#[test]
fn a_complaint_is_what_the_installer_calls_an_error() {
    let mut chatter = Chatter::default();
    chatter.add(Stream::Err, "note\nERROR: no such thing\nnpm error code E1\nbye\n", &|_| {});
    assert_eq!(chatter.complaint(), "ERROR: no such thing; npm error code E1");
    assert_eq!(Chatter::default().complaint(), "the installer said nothing");
}
