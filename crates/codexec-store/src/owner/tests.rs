#![expect(clippy::disallowed_methods, reason = "an owner that dies must be a real process")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
};

use super::*;

const CHILD: &str = "CODEXEC_STORE_TEST_OWNER";

const BITS: u128 = 7;

#[test]
fn an_owner_that_was_killed_is_dead_also_while_a_child_has_its_files() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner::tests::child_claims_and_waits_to_be_killed", "--nocapture"])
        .env(CHILD, home.path().join("codexec.db"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "child is ready"));
    let folder = Folder::beside(&home.path().join("codexec.db"));
    let id = format!("{BITS:032x}");
    assert!(folder.is_alive(&id));
    folder.tidy();
    assert!(folder.is_alive(&id));

    // Its own child reads our pipe, so that it lives until the end of this test.
    let _pipe = server.stdin.take();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(!folder.is_alive(&id));
}

#[test]
fn our_own_are_alive_until_they_are_dropped() {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::beside(&home.path().join("codexec.db"));
    drop(folder.alone().unwrap());
    let owner = folder.claim(BITS + 1).unwrap();
    assert!(folder.is_alive(&owner.id));
    folder.tidy();
    let id = owner.id.clone();
    assert!(folder.is_alive(&id));
    drop(owner);
    assert!(!folder.is_alive(&id));
}

/// The other side of the first test: does nothing unless that one started it.
#[test]
fn child_claims_and_waits_to_be_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let folder = Folder::beside(Path::new(&path));
    drop(folder.alone().unwrap());
    let owner = folder.claim(BITS).unwrap();
    // Any child has all files of its parent until it becomes another program; this one keeps one.
    let open = || OpenOptions::new().write(true).open(&owner.path).unwrap();
    let mut child = Command::new("cat").stdout(open()).spawn().unwrap();
    // What was handed over was closed here, and the lock went with it.
    let file = open();
    fcntl(&file, FcntlArg::F_SETLK(&whole_file())).unwrap();
    println!("\nchild is ready");
    let _ = std::io::stdin().read(&mut [0]);
    child.wait().unwrap();
}
