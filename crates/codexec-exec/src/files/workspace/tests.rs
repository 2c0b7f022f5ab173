use std::fs::{self, File};
use std::os::unix::fs::symlink;

use codexec_types::Artifact;
use tempfile::TempDir;

use super::*;

fn names(artifacts: &[Artifact]) -> Vec<&str> {
    artifacts.iter().map(|artifact| artifact.path.as_str()).collect()
}

fn collect_changes(
    home: &TempDir,
    before: &WorkspaceFiles,
    keep: &TempDir,
) -> (FileChanges, WorkspaceFiles) {
    collect(OwnedFd::from(File::open(home.path()).unwrap()), before, keep.path())
}

fn folder() -> TempDir {
    TempDir::new().unwrap()
}

#[test]
fn created_modified_and_deleted_files_are_listed() {
    let (home, keep) = (folder(), folder());
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("deep")).unwrap();
    for name in ["same", "changed", "deep/gone"] {
        fs::write(at(name), "x").unwrap();
    }
    let (_, before) = collect_changes(&home, &WorkspaceFiles::new(), &folder());
    fs::write(at("changed"), "longer").unwrap();
    fs::remove_file(at("deep/gone")).unwrap();
    fs::create_dir(at("new")).unwrap();
    fs::write(at("new/file"), "").unwrap();
    let (changes, _) = collect_changes(&home, &before, &keep);
    assert_eq!(names(&changes.created), ["new/file"]);
    assert_eq!(changes.modified, [Artifact { path: "changed".to_owned(), bytes: 6 }]);
    assert_eq!(names(&changes.deleted), ["deep/gone"]);
    assert_eq!(changes.left_out, 0);
    assert_eq!(fs::read_to_string(keep.path().join("changed")).unwrap(), "longer");
}

/// THREAT[FIL-6]
#[test]
fn fil_6_links_are_listed_and_never_followed() {
    let (home, keep) = (folder(), folder());
    symlink("/etc/passwd", home.path().join("link")).unwrap();
    symlink("/etc", home.path().join("folder")).unwrap();
    fs::write(home.path().join("file"), "mine").unwrap();
    let (changes, _) = collect_changes(&home, &WorkspaceFiles::new(), &keep);
    assert_eq!(names(&changes.created), ["file", "folder", "link"]);
    let copied: Vec<_> =
        fs::read_dir(keep.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(copied, ["file"]);
}

#[test]
fn a_flood_of_files_is_counted() {
    let home = folder();
    for n in 0..207 {
        fs::write(home.path().join(n.to_string()), "").unwrap();
    }
    let (changes, _) = collect_changes(&home, &WorkspaceFiles::new(), &folder());
    assert_eq!((changes.created.len(), changes.left_out), (200, 7));
}

/// Copies are limited by the bytes copied, not by the size that a file once had.
#[test]
fn copies_are_limited() {
    let (home, keep) = (folder(), folder());
    for n in 0..1_010 {
        fs::write(home.path().join(format!("{n:04}")), "x").unwrap();
    }
    File::create(home.path().join("00-large")).unwrap().set_len(65 << 20).unwrap();
    collect_changes(&home, &WorkspaceFiles::new(), &keep);
    assert_eq!(fs::read_dir(keep.path()).unwrap().count(), 1_000);
    assert!(!keep.path().join("00-large").exists());
}
