use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    path.metadata().expect("a file").mode() & 0o777
}

#[test]
fn lines_are_appended_to_a_private_file() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("new/folder/audit.jsonl");
    append(&path, "one\n").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("changed");
    append(&path, "two\n").expect("written");
    assert_eq!(std::fs::read_to_string(&path).expect("text"), "one\ntwo\n");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&home.path().join("new/folder")), 0o700);
}

#[test]
fn symlinks_and_special_files_are_not_written() {
    let home = tempfile::tempdir().expect("a directory");
    let (target, link) = (home.path().join("target"), home.path().join("link"));
    std::fs::write(&target, "theirs").expect("written");
    symlink(&target, &link).expect("a link");
    append(&link, "ours\n").expect_err("a link");
    assert_eq!(std::fs::read_to_string(&target).expect("text"), "theirs");
    append(home.path(), "ours\n").expect_err("a directory");
    let pipe = home.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    append(&pipe, "ours\n").expect_err("nobody reads it, and nobody waits for that");
}

#[test]
fn a_long_line_is_left_out_and_a_long_file_is_rotated() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("audit.jsonl");
    let fits = "x".repeat(MAX_LINE_BYTES);
    append(&path, &fits).expect("written");
    append(&path, &format!("{fits}x")).expect_err("too long");
    assert_eq!(path.metadata().expect("a file").len(), MAX_LINE_BYTES as u64);
    let file = OpenOptions::new().write(true).open(&path).expect("a file");
    file.set_len(MAX_FILE_BYTES - 4).expect("longer");
    append(&path, "last").expect("written");
    append(&path, "new\n").expect("written");
    assert_eq!(std::fs::read_to_string(&path).expect("text"), "new\n");
    assert_eq!(rotated_path(&path).metadata().expect("a file").len(), MAX_FILE_BYTES);
}

#[test]
fn every_day_has_its_file_beside_the_configured_path() {
    let day = |seconds: u64| {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        daily_path(Path::new("/logs/audit.log"), at)
    };
    assert_eq!(day(1_770_595_199), Path::new("/logs/audit-2026-02-08.jsonl"));
    assert_eq!(day(1_770_595_200), Path::new("/logs/audit-2026-02-09.jsonl"));
}
