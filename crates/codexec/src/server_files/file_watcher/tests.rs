use std::fs;

use super::*;

/// Returns the names that changed after `change`. The test runner's timeout ends a wait that never
/// succeeds.
async fn changes_after(watch: &mut FileWatcher, root: &Path, change: impl FnOnce()) -> Vec<String> {
    change();
    let changed = watch.next_changes().await.expect("a change");
    let mut names: Vec<String> = changed
        .iter()
        .map(|path| path.strip_prefix(root).unwrap_or(path).display().to_string())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn created_replaced_and_removed_files_are_seen() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("there");
    let at = |name: &str| root.join(name);
    fs::create_dir(at("all")).expect("made");
    let files = vec![at("a.json"), at("x/y/b.json")];
    let mut watch = FileWatcher::new(files, vec![at("all")]).expect("a watch");
    let watch = &mut watch;
    let new = || {
        fs::write(at("other"), "1").expect("written");
        fs::write(at("a.json"), "1").expect("written");
    };
    assert_eq!(changes_after(watch, &root, new).await, ["a.json"]);
    let replaced = || {
        fs::write(at("a.tmp"), "2").expect("written");
        fs::rename(at("a.tmp"), at("a.json")).expect("renamed");
    };
    assert_eq!(changes_after(watch, &root, replaced).await, ["a.json"]);
    assert_eq!(changes_after(watch, &root, || fs::create_dir(at("x")).expect("made")).await, ["x"]);
    assert_eq!(
        changes_after(watch, &root, || fs::create_dir(at("x/y")).expect("made")).await,
        ["x/y"]
    );
    let write = || fs::write(at("x/y/b.json"), "1").expect("written");
    assert_eq!(changes_after(watch, &root, write).await, ["x/y/b.json"]);
    let gone = || fs::remove_dir_all(at("x")).expect("removed");
    assert_eq!(changes_after(watch, &root, gone).await, ["x/y", "x/y/b.json"]);
    let write = || fs::write(at("all/anything"), "1").expect("written");
    assert_eq!(changes_after(watch, &root, write).await, ["all/anything"]);
    let gone = || fs::remove_file(at("a.json")).expect("removed");
    assert_eq!(changes_after(watch, &root, gone).await, ["a.json"]);
}

#[tokio::test]
async fn changes_of_a_symlink_target_are_seen() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("there");
    fs::create_dir(root.join("dots")).expect("made");
    fs::write(root.join("dots/real"), "1").expect("written");
    std::os::unix::fs::symlink("dots/real", root.join("link")).expect("a link");
    let mut watch = FileWatcher::new(vec![root.join("link")], Vec::new()).expect("a watch");
    let write = || fs::write(root.join("dots/real"), "2").expect("written");
    assert_eq!(changes_after(&mut watch, &root, write).await, ["dots/real"]);
}
