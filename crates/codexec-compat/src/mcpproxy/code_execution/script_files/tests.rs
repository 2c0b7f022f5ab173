use std::os::unix::fs::symlink;

use super::*;

fn describe(folder: &Path, name: &str) -> String {
    match find(folder, name) {
        Ok(Some(stored)) => format!("{} {}", stored.language, stored.code.len()),
        Ok(None) => "nothing".to_owned(),
        Err(refused) => format!("{}: {}", refused.code, refused.message),
    }
}

#[test]
fn a_name_refers_to_one_regular_file() {
    let home = tempfile::tempdir().expect("a directory");
    let folder = home.path().join("scripts");
    assert_eq!(describe(&folder, "a"), "nothing");
    std::fs::create_dir(&folder).expect("made");
    let write =
        |file: &str, bytes: &[u8]| std::fs::write(folder.join(file), bytes).expect("written");
    write("a.js", b"1");
    write("b.ts", b"22");
    write("most.js", &vec![b'1'; 256 << 10]);
    write("more.js", &vec![b'1'; (256 << 10) + 1]);
    write("both.js", b"1");
    write("both.ts", b"1");
    write("empty.js", b"");
    write("bytes.js", b"\xff");
    write("other.py", b"1");
    std::fs::create_dir(folder.join("folder.js")).expect("made");
    symlink(folder.join("a.js"), folder.join("link.js")).expect("linked");
    nix::unistd::mkfifo(&folder.join("pipe.js"), Mode::S_IRWXU).expect("made");

    assert_eq!(describe(&folder, "a"), "javascript 1");
    assert_eq!(describe(&folder, "b"), "typescript 2");
    assert_eq!(describe(&folder, "most"), "javascript 262144");
    assert_eq!(describe(&folder, "other"), "nothing");
    let unusable = [
        ("more", "it has more than 262144 bytes"),
        ("both", "both both.js and both.ts are there, so it is ambiguous; remove one"),
        ("empty", "it is empty"),
        ("bytes", "it is not UTF-8; save it as UTF-8"),
        ("folder", "it is not a regular file"),
        ("link", "it is a link; put the file itself there"),
        ("pipe", "it is not a regular file"),
    ];
    for (name, problem) in unusable {
        assert_eq!(describe(&folder, name), format!("SCRIPT_UNUSABLE: script {name:?}: {problem}"));
    }
}

#[test]
fn names_are_never_paths() {
    let long = "a".repeat(64);
    for name in ["a", "A-b_9", "-", &long] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    let longer = "a".repeat(65);
    for name in ["", ".", "..", "a.js", "../a", "a/b", "/a", "a b", "ä", "a\0", &longer] {
        let code = check_name(name).map_err(|refused| refused.code);
        assert_eq!(code, Err("INVALID_SCRIPT_NAME"), "{name}");
    }
}

#[test]
fn lists_are_sorted_and_limited() {
    let folder = tempfile::tempdir().expect("a directory");
    for file in ["b.js", "a.ts", "c.js", "d e.js", "x.py", ".js"] {
        std::fs::write(folder.path().join(file), "1").expect("written");
    }
    symlink("/etc/hostname", folder.path().join("link.js")).expect("linked");
    let names = |most| {
        let listed = list(folder.path(), most).into_iter();
        listed.map(|script| script.name).collect::<Vec<_>>()
    };
    assert_eq!(names(10), ["a", "b", "c"]);
    assert_eq!(names(2), ["a", "b"]);
    assert_eq!(list(&folder.path().join("nowhere"), 9), []);
}
