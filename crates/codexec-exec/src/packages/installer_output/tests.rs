use std::sync::Mutex;

use super::*;

#[test]
fn output_and_progress_are_bounded() {
    let reported = Mutex::new(Vec::new());
    let report = |line: &str| reported.lock().expect("unpoisoned").push(line.to_owned());
    let mut installer_output = InstallerOutput::default();
    installer_output.add(OutputStream::Out, "Collecting s", &report);
    installer_output.add(OutputStream::Out, "ix\n\n\x1b[1mDone\n", &report);
    assert_eq!(*reported.lock().expect("unpoisoned"), ["Collecting six", "[1mDone"]);
    for _ in 0..10_000 {
        installer_output.add(OutputStream::Err, &format!("{}\n", "é".repeat(500)), &report);
    }
    let reported = reported.lock().expect("unpoisoned");
    assert_eq!(reported.len(), MAX_REPORTED);
    assert!(reported.iter().all(|line| line.chars().count() <= LINE_CHARS));
    assert!(
        installer_output.err.text.len() <= 2 * TAIL_BYTES
            && installer_output.text().contains("[..]")
    );
}

#[test]
fn error_lines_are_those_marked_as_errors() {
    let mut installer_output = InstallerOutput::default();
    installer_output.add(
        OutputStream::Err,
        "note\nERROR: no such thing\nnpm error code E1\nbye\n",
        &|_| {},
    );
    assert_eq!(installer_output.error_lines(), "ERROR: no such thing; npm error code E1");
    assert_eq!(InstallerOutput::default().error_lines(), "the installer printed nothing");
}
