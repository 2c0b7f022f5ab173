use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

#[test]
fn one_holder_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new/file.lock");
    let first = FileLock::try_acquire(&path).expect("opened").expect("free");
    assert!(FileLock::try_acquire(&path).expect("opened").is_none());
    drop(first);
    let second = FileLock::acquire(&path).expect("free again");
    assert!(FileLock::try_acquire(&path).expect("opened").is_none());
    drop(second);
    let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&folder.path().join("new"))), (0o600, 0o700));
}

#[test]
fn a_symlink_is_not_locked() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("target");
    symlink(&target, folder.path().join("lock")).expect("linked");
    assert!(FileLock::try_acquire(&folder.path().join("lock")).is_err());
    assert!(!target.exists());
}
