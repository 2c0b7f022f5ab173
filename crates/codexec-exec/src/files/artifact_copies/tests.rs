use std::fs::File;
use std::os::fd::OwnedFd;

use super::*;

/// THREAT[FIL-6]: a file of `/proc` says that it is empty, like a file that grows after it was
/// checked.
#[test]
fn fil_6_a_file_is_copied_up_to_the_limit_whatever_its_size_was() {
    let keep = tempfile::tempdir().unwrap();
    let tree = DirTree::new(OwnedFd::from(File::open("/proc/self").unwrap()));
    let mut copies = ArtifactCopies { folder: keep.path(), bytes_left: 10, files_left: 2 };
    assert!(copies.copy_file(&tree, Path::new("status")).unwrap());
    assert_eq!((copies.bytes_left, copies.files_left), (0, 1));
    assert_eq!(std::fs::metadata(keep.path().join("status")).unwrap().len(), 10);
}
