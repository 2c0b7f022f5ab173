use std::os::unix::fs::symlink;

use super::*;

struct Folder {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

/// A folder with `a.txt`, `sub/b.txt` and links to files outside, and a secret next to it.
fn folder() -> Folder {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("exec_1");
    std::fs::create_dir_all(path.join("sub")).expect("made");
    std::fs::write(path.join("a.txt"), "a").expect("written");
    std::fs::write(path.join("sub/b.txt"), "bb").expect("written");
    std::fs::write(dir.path().join("secret"), "secret").expect("written");
    symlink("../secret", path.join("link")).expect("made");
    symlink("/etc", path.join("etc")).expect("made");
    symlink("sub", path.join("inside")).expect("made");
    Folder { _dir: dir, path }
}

#[track_caller]
fn check(names: &[&str], expected: &str) {
    let actual = match read(&folder().path, names) {
        Ok(bytes) => String::from_utf8(bytes).expect("text"),
        Err(error) => error.to_string(),
    };
    assert_eq!(actual, expected, "{names:?}");
}

#[test]
fn files_are_read_by_their_names() {
    check(&["a.txt"], "a");
    check(&["sub", "b.txt"], "bb");
}

#[test]
fn other_names_are_missing() {
    let missing = "there is no such file";
    check(&[], missing);
    for names in [
        &["nowhere"][..],
        &["sub"],
        &["a.txt", "b"],
        &[".."],
        &["..", "secret"],
        &["sub", "..", "..", "secret"],
        &["../secret"],
        &["sub/b.txt"],
        &["/etc/hostname"],
        &["/", "etc", "hostname"],
        &[""],
        &["."],
        &[".", "a.txt"],
        &["", "a.txt"],
        &["a.txt/"],
        &["a\0b"],
    ] {
        check(names, missing);
    }
    check(&[&"x".repeat(5_000)], missing);
}

#[test]
fn no_symlink_is_followed() {
    for names in [&["link"][..], &["etc", "hostname"], &["etc"], &["inside", "b.txt"]] {
        check(names, "there is no such file");
    }
    // The folder itself must not be a link either.
    let folder = folder();
    let linked = folder.path.with_file_name("exec_2");
    symlink(&folder.path, &linked).expect("made");
    assert!(matches!(read(&linked, &["a.txt"]), Err(ArtifactError::Missing)));
}

#[test]
fn opening_a_fifo_or_socket_does_not_block() {
    let folder = folder();
    nix::unistd::mkfifo(&folder.path.join("pipe"), Mode::S_IRUSR | Mode::S_IWUSR).expect("made");
    assert!(matches!(read(&folder.path, &["pipe"]), Err(ArtifactError::Missing)));
    let socket = std::os::unix::net::UnixListener::bind(folder.path.join("socket"));
    assert!(matches!(read(&folder.path, &["socket"]), Err(ArtifactError::Missing)));
    drop(socket);
}

#[test]
fn a_long_file_is_refused_with_its_length() {
    let folder = folder();
    let file = File::create(folder.path.join("long")).expect("made");
    file.set_len(MAX_BYTES).expect("grown");
    assert_eq!(read(&folder.path, &["long"]).expect("read").len(), 8 << 20);
    file.set_len(MAX_BYTES + 1).expect("grown");
    let error = read(&folder.path, &["long"]).expect_err("refused");
    assert_eq!(error.to_string(), "it has 8388609 bytes; at most 8388608 are read");
}

#[test]
fn the_list_has_the_files_and_no_links() {
    let folder = folder();
    let file = |path: &str, bytes| ArtifactFile { path: path.into(), bytes };
    assert_eq!(list(&folder.path), [file("a.txt", 1), file("sub/b.txt", 2)]);
    assert_eq!(list(&folder.path.join("nowhere")), []);
    for n in 0..1_200 {
        std::fs::write(folder.path.join(format!("f{n}")), "").expect("written");
    }
    assert!(list(&folder.path).len() <= 1_000);
}
