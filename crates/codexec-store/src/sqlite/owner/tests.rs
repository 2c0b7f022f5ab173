#![expect(clippy::disallowed_methods, reason = "an owner that dies must be a real process")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
};

use super::*;

const CHILD: &str = "CODEXEC_STORE_TEST_OWNER";

const BITS: u128 = 7;

#[test]
fn a_killed_owner_is_dead_even_while_a_child_holds_its_files() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sqlite::owner::tests::child_claims_and_waits_to_be_killed",
            "--nocapture",
        ])
        .env(CHILD, home.path().join("codexec.db"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "child is ready"));
    let folder = OwnerFolder::next_to(&home.path().join("codexec.db"));
    let id = format!("{BITS:032x}");
    assert!(folder.is_alive(&id));
    folder.remove_dead();
    assert!(folder.is_alive(&id));

    // The server's child reads our pipe, so it lives until the end of this test.
    let _pipe = server.stdin.take();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(!folder.is_alive(&id));
}

#[test]
fn own_ids_are_alive_until_they_are_dropped() {
    let home = tempfile::tempdir().unwrap();
    let folder = OwnerFolder::next_to(&home.path().join("codexec.db"));
    drop(folder.lock_opening().unwrap());
    let owner = folder.claim(BITS + 1).unwrap();
    assert!(folder.is_alive(&owner.id));
    folder.remove_dead();
    let id = owner.id.clone();
    assert!(folder.is_alive(&id));
    drop(owner);
    assert!(!folder.is_alive(&id));
}

/// The child process of the first test. Does nothing unless that test started it.
#[test]
fn child_claims_and_waits_to_be_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let folder = OwnerFolder::next_to(Path::new(&path));
    drop(folder.lock_opening().unwrap());
    let owner = folder.claim(BITS).unwrap();
    // Any child has all files of its parent until exec; this one keeps one open.
    let open = || fs::OpenOptions::new().write(true).open(&owner.path).unwrap();
    let mut child = Command::new("cat").stdout(open()).spawn().unwrap();
    // Closing our descriptor of the file above released the lock, so this takes it again.
    let file = open();
    let _lock = ProcessLock::acquire(file).unwrap();
    println!("\nchild is ready");
    let _ = std::io::stdin().read(&mut [0]);
    child.wait().unwrap();
}
