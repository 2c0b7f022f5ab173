use std::fs::{self, File};
use std::os::fd::AsFd as _;

use super::*;
use crate::files::DirTree;

/// Runs many rounds: the timestamp must separate the two writes in each.
#[test]
fn every_change_is_before_or_after() {
    let home = tempfile::tempdir().unwrap();
    let root = File::open(home.path()).unwrap();
    let tree = DirTree::new(root.try_clone().unwrap().into());
    for round in 0..200 {
        let (before, after) = (format!("{round}-before"), format!("{round}-after"));
        fs::write(home.path().join(&before), "").unwrap();
        let moment = FileTime::after_all_changes(root.as_fd()).unwrap();
        fs::write(home.path().join(&after), "").unwrap();
        let changed = |name: &str| tree.find(name.as_ref()).unwrap().unwrap().stamp.changed;
        assert!(changed(&before) < moment, "{round}");
        assert!(changed(&after) >= moment, "{round}");
    }
}
