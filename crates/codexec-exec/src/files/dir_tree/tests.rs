use std::os::unix::fs::symlink;

use super::*;

fn tree(path: &Path) -> DirTree {
    DirTree::new(OwnedFd::from(File::open(path).unwrap()))
}

/// THREAT[FIL-6]
#[test]
fn fil_6_nothing_is_reached_through_links_or_out_of_the_tree() {
    let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("secret"), "canary").unwrap();
    symlink(outside.path(), home.path().join("folder")).unwrap();
    symlink(outside.path().join("secret"), home.path().join("file")).unwrap();
    std::fs::create_dir(home.path().join("in")).unwrap();
    let tree = tree(home.path());
    for path in ["folder/secret", "file", "in/../../secret", "/etc/passwd", "../secret"] {
        assert!(tree.open_file(Path::new(path)).is_err(), "{path}");
    }
    assert!(tree.list(Path::new("folder")).is_err());
    let kinds: Vec<_> =
        tree.list(Path::new("")).unwrap().into_iter().map(|(_, n)| n.kind).collect();
    assert_eq!(kinds, [FileKind::Link, FileKind::Link, FileKind::Dir]);
}

/// THREAT[FIL-6]
#[test]
fn fil_6_a_pipe_makes_nobody_wait() {
    let home = tempfile::tempdir().unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, home.path().join("pipe"), FileType::Fifo, mode, 0).unwrap();
    assert!(tree(home.path()).open_file(Path::new("pipe")).is_err());
}
