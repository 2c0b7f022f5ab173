use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use super::*;

const TITLE: &str = "test 1";

fn write_sample(folder: &Path) -> PathBuf {
    let path = folder.join("deep/er/file.json");
    write(&path, TITLE, "{\"a\":1}").expect("written");
    path
}

fn body(path: &Path) -> Result<Option<String>, String> {
    let read = read(path, TITLE, 100).map_err(|err| err.to_string());
    Ok(read?.map(|(body, _)| body))
}

#[test]
fn a_written_file_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_sample(folder.path());
    assert_eq!(body(&path), Ok(Some("{\"a\":1}".to_owned())));
    assert_eq!(body(&folder.path().join("missing")), Ok(None));
    let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().expect("a folder")), 0o700);
    let before = FileStamp::read(&path);
    let after = write(&path, TITLE, "{\"a\":2}").expect("written");
    assert_eq!(body(&path), Ok(Some("{\"a\":2}".to_owned())));
    assert_eq!(FileStamp::read(&path), Some(after));
    assert_ne!(before, Some(after));
    let names = std::fs::read_dir(path.parent().expect("a folder")).expect("readable").count();
    assert_eq!(names, 1, "nothing is left beside it");
}

/// A file that is truncated anywhere, or has any bit flipped, is not read.
#[test]
fn up_4_a_damaged_file_is_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_sample(folder.path());
    let whole = std::fs::read(&path).expect("readable");
    let damaged = Err("it is damaged, or written by another version of codexec".to_owned());
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).expect("written");
        assert_eq!(body(&path), damaged, "cut at {length}");
    }
    for at in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        std::fs::write(&path, flipped).expect("written");
        assert_eq!(body(&path), damaged, "bit {at}");
    }
    std::fs::write(&path, &whole).expect("written");
    let other = read(&path, "test 2", 100).expect_err("of another version");
    assert!(matches!(other, SealedFileError::Damaged));
}

#[test]
fn up_4_a_file_that_others_can_write_is_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_sample(folder.path());
    let foreign = Err("it is not a regular file that you own and only you can write".to_owned());
    let link = folder.path().join("link");
    symlink(&path, &link).expect("linked");
    assert_eq!(body(&link), foreign);
    assert_eq!(body(folder.path()), foreign);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o622)).expect("set");
    assert_eq!(body(&path), foreign);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("set");
    let long = read(&path, TITLE, 50).expect_err("too long");
    assert_eq!(long.to_string(), "it has more than 50 bytes");
    std::fs::hard_link(&path, folder.path().join("second")).expect("linked");
    assert_eq!(body(&path), foreign);
}
