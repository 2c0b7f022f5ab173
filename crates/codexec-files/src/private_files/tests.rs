use std::{io::Read as _, os::unix::fs::symlink, path::PathBuf};

use super::*;

fn mode(path: &Path) -> u32 {
    path.metadata().expect("there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
}

#[test]
fn a_new_file_and_its_folders_are_private() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/er/file");
    replace(&path, b"text").expect("written");
    assert_eq!(std::fs::read(&path).expect("readable"), b"text");
    let modes = [&path, &folder.path().join("deep/er"), &folder.path().join("deep")];
    assert_eq!(modes.map(|path| mode(path)), [0o600, 0o700, 0o700]);

    let logs = folder.path().join("logs");
    open_to_append(&logs).expect("opened").write_all(b"a").expect("written");
    set_mode(&logs, 0o644);
    let mut log = open_to_append(&logs).expect("opened");
    log.write_all(b"b").expect("written");
    assert_eq!((std::fs::read(&logs).expect("readable"), mode(&logs)), (b"ab".to_vec(), 0o600));
}

#[test]
fn an_existing_folder_keeps_its_mode() {
    let folder = tempfile::tempdir().expect("a folder");
    set_mode(folder.path(), 0o755);
    make_folder(folder.path()).expect("there");
    assert_eq!(mode(folder.path()), 0o755);
}

#[test]
fn replacing_a_symlink_leaves_its_target() {
    let folder = tempfile::tempdir().expect("a folder");
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    std::fs::write(&target, "old").expect("written");
    symlink(&target, &link).expect("linked");
    let stamp = replace(&link, b"new").expect("written");
    assert_eq!(FileStamp::read(&link), Some(stamp));
    assert_eq!(std::fs::read(&target).expect("readable"), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 2, "no temporary file");
}

#[test]
fn only_regular_files_are_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    std::fs::write(path("file"), "text").expect("written");
    symlink(path("file"), path("link")).expect("linked");
    symlink(path("missing"), path("dangling")).expect("linked");
    nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    for name in ["link", "dangling", "pipe"] {
        for open in [open_to_read, open_to_append, open_to_write] {
            open(&path(name)).expect_err(name);
        }
        create(&path(name)).expect_err(name);
    }
    assert_eq!(open_to_read(&path("link")).expect_err("a link").kind(), io::ErrorKind::InvalidData);
    assert_eq!(open_to_read(&path("pipe")).expect_err("a pipe").kind(), io::ErrorKind::InvalidData);
    assert!(!path("missing").exists());
    let mut text = String::new();
    open_to_read(&path("file")).expect("opened").read_to_string(&mut text).expect("read");
    assert_eq!(text, "text");
}
