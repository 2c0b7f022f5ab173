use std::{fs::File, os::unix::fs::symlink};

use super::*;

#[test]
fn a_stamp_is_the_same_by_path_and_by_descriptor() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, "text").expect("written");
    let stamp = FileStamp::read(&path).expect("there");
    let handle = File::open(folder.path()).expect("opened");
    assert_eq!(FileStamp::read_at(&handle, "file"), Some(stamp));
    assert_eq!(FileStamp::of(&path.metadata().expect("there")), stamp);
    assert_eq!(stamp.bytes(), 4);
    let changed = (stamp.changed.0, stamp.changed.1);
    let since = stamp.changed().duration_since(UNIX_EPOCH).expect("after 1970");
    assert_eq!((since.as_secs() as i64, i64::from(since.subsec_nanos())), changed);

    symlink(&path, folder.path().join("link")).expect("linked");
    assert_ne!(FileStamp::read(&folder.path().join("link")), Some(stamp));
    assert_eq!(FileStamp::read(&folder.path().join("missing")), None);
    assert_eq!(FileStamp::read_at(&handle, "missing"), None);
}

#[test]
fn only_a_new_stamp_is_recent() {
    let at = |moment: SystemTime| {
        let since = moment.duration_since(UNIX_EPOCH).expect("after 1970");
        let changed = (since.as_secs() as i64, i64::from(since.subsec_nanos()));
        FileStamp { device: 0, inode: 0, bytes: 0, changed }
    };
    let now = SystemTime::now();
    assert!(!at(now - CLOCK_STEP).is_recent());
    assert!(!at(now + Duration::from_secs(60)).is_recent());
    assert_eq!(
        FileStamp { changed: (-5, 7), ..at(now) }.changed(),
        UNIX_EPOCH + Duration::from_nanos(7)
    );
}
