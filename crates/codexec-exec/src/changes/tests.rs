use super::*;

fn names(artifacts: &[Artifact]) -> Vec<&str> {
    artifacts.iter().map(|artifact| artifact.path.as_str()).collect()
}

#[test]
fn created_modified_and_deleted_are_told_apart() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("deep")).unwrap();
    for name in ["same", "changed", "deep/gone"] {
        fs::write(at(name), "x").unwrap();
    }
    let before = see(home.path());
    fs::write(at("changed"), "longer").unwrap();
    fs::remove_file(at("deep/gone")).unwrap();
    fs::create_dir(at("new")).unwrap();
    fs::write(at("new/file"), "").unwrap();
    let changes = difference(&before, &see(home.path()));
    assert_eq!(names(&changes.created), ["new/file"]);
    assert_eq!(changes.modified, [Artifact { path: "changed".to_owned(), bytes: 6 }]);
    assert_eq!(names(&changes.deleted), ["deep/gone"]);
    assert_eq!(changes.left_out, 0);
}

#[test]
fn links_are_listed_and_never_followed() {
    let (home, keep) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink("/etc/passwd", home.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", home.path().join("folder")).unwrap();
    fs::write(home.path().join("file"), "mine").unwrap();
    let workspace = OwnedFd::from(File::open(home.path()).unwrap());
    let (changes, after) = collect(&workspace, &BTreeMap::new(), keep.path());
    assert_eq!(names(&changes.created), ["file", "folder", "link"]);
    let kept = see(keep.path());
    assert_eq!(kept.keys().collect::<Vec<_>>(), [Path::new("file")]);

    fs::write(home.path().join("later"), "of a session's next cell").unwrap();
    let next = tempfile::tempdir().unwrap();
    let (changes, _) = collect(&workspace, &after, next.path());
    assert_eq!(names(&changes.created), ["later"]);
    assert_eq!(see(next.path()).keys().collect::<Vec<_>>(), [Path::new("later")]);
}

#[test]
fn a_flood_of_files_is_counted() {
    let home = tempfile::tempdir().unwrap();
    for n in 0..MAX_LISTED + 7 {
        fs::write(home.path().join(n.to_string()), "").unwrap();
    }
    let changes = difference(&BTreeMap::new(), &see(home.path()));
    assert_eq!((changes.created.len(), changes.left_out), (MAX_LISTED, 7));
}
