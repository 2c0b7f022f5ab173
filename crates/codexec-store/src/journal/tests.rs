use std::{collections::HashSet, fs, os::unix::fs::symlink};

use super::file::LogFile;

#[test]
fn only_an_incomplete_last_line_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    for (before, after) in [
        ("", ""),
        ("{}\n", "{}\n"),
        ("{}\n{\"a\":", "{}\n"),
        ("{\"a\":", ""),
        (&format!("{{}}\n{}", "x".repeat(200_000)), "{}\n"),
    ] {
        fs::write(&path, before).unwrap();
        let mut log = LogFile::open(&path).unwrap();
        log.append(b"[]\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{after}[]\n"));
    }
}

#[test]
fn lines_are_found_by_their_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    let long = "y".repeat(300_000);
    fs::write(&path, format!("aa1{long}\nbb\ncc2\nx aa3\n")).unwrap();
    let mut log = LogFile::open(&path).unwrap();
    let prefixes = HashSet::from(["aa1", "bb", "bbb", "aa3", "cc"]);
    let found = log.find_prefixes(&prefixes).unwrap();
    assert_eq!(found, HashSet::from(["aa1", "bb", "cc"].map(str::to_owned)));
    log.append(b"z\n").unwrap();
    assert!(fs::read_to_string(&path).unwrap().ends_with("aa3\nz\n"));
}

#[test]
fn symlinks_folders_and_pipes_are_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::write(&target, "mine").unwrap();
    symlink(&target, folder.path().join("link.jsonl")).unwrap();
    assert!(LogFile::open(&folder.path().join("link.jsonl")).is_err());
    fs::create_dir(folder.path().join("dir.jsonl")).unwrap();
    assert!(LogFile::open(&folder.path().join("dir.jsonl")).is_err());
    nix::unistd::mkfifo(&folder.path().join("pipe.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(LogFile::open(&folder.path().join("pipe.jsonl")).is_err(), "and it does not hang");
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    symlink(folder.path(), folder.path().join("logs")).unwrap();
    assert!(super::lock(&folder.path().join("logs")).is_err());
}
