use std::os::unix::fs::symlink;

use super::*;

/// A directory with `sub`, `file`, a link to `sub`, and a link `away` to a directory that is not
/// allowed.
struct TestDir {
    _dir: tempfile::TempDir,
    root: PathBuf,
    files: WorkingDirPolicy,
}

impl TestDir {
    fn new() -> TestDir {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("real");
        std::fs::create_dir(root.join("sub")).expect("made");
        std::fs::write(root.join("file"), "x").expect("written");
        symlink("sub", root.join("link")).expect("made");
        symlink("/etc", root.join("away")).expect("made");
        let files = WorkingDirPolicy { allowed: vec![root.clone()], ..WorkingDirPolicy::default() };
        TestDir { _dir: dir, root, files }
    }

    /// Returns the code and the message, with the directory's own path as ROOT.
    async fn refused(&self, path: &str) -> String {
        let path = path.replace("ROOT", &self.root.display().to_string());
        let error = resolve_dir(path.into(), &self.files).await.expect_err("refused");
        format!("{} {error}", error.code()).replace(&self.root.display().to_string(), "ROOT")
    }
}

#[tokio::test]
async fn a_directory_is_resolved_to_its_real_path() {
    let dir = TestDir::new();
    let about = std::fs::metadata(dir.root.join("sub")).expect("there");
    for name in ["sub", "sub/", "./sub/.", "link"] {
        let found = resolve_dir(dir.root.join(name), &dir.files).await.expect("found");
        assert_eq!(found.path, dir.root.join("sub"));
        assert_eq!((found.device, found.inode), (about.dev(), about.ino()));
        assert_eq!((found.uid, found.gid), (about.uid(), about.gid()));
    }
    // `~` is the user's home directory.
    let files = WorkingDirPolicy { home: Some(dir.root.clone()), ..dir.files.clone() };
    for (written, expected) in [("~", ""), ("~/", ""), ("~/sub", "sub"), ("~/link/", "sub")] {
        let found = resolve_dir(written.into(), &files).await.expect("found");
        assert_eq!(found.path, dir.root.join(expected), "{written}");
    }
    for written in ["~ann", "sub/~", "~ann/sub"] {
        resolve_dir(written.into(), &files).await.expect_err("not absolute");
    }
    // The policy checks the real path that a link leads to.
    let away = resolve_dir(dir.root.join("away"), &dir.files).await.expect("found");
    assert_eq!(away.path, Path::new("/etc"));
}

#[tokio::test]
async fn every_failure_names_the_field_and_what_to_do() {
    let dir = TestDir::new();
    for path in ["", "sub", "~/sub", "~", ".", "file:///tmp"] {
        let expected = format!(
            "INVALID_ARGS working_dir: \"{path}\" is not an absolute path; write it from `/` or `~/` on"
        );
        assert_eq!(dir.refused(path).await, expected);
    }
    assert_eq!(
        dir.refused("ROOT/../x").await,
        "INVALID_ARGS working_dir: \"ROOT/../x\" contains `..`; write the absolute path without it"
    );
    assert_eq!(
        dir.refused("/a\0b").await,
        "INVALID_ARGS working_dir: \"/a\\u{0}b\" has a NUL character; remove it"
    );
    let no_directory = "is not a directory; name the directory it is in";
    assert_eq!(
        dir.refused("ROOT/file").await,
        format!("INVALID_ARGS working_dir: \"ROOT/file\" {no_directory}")
    );
    assert_eq!(
        dir.refused("ROOT/file/below").await,
        format!("INVALID_ARGS working_dir: \"ROOT/file/below\" {no_directory}")
    );
    assert_eq!(
        dir.refused("ROOT/no\n").await,
        "WORKING_DIR_NOT_FOUND working_dir: \"ROOT/no\\n\" does not exist; name a directory that \
         does"
    );
    let long = dir.refused(&format!("ROOT/{}", "x".repeat(100_000))).await;
    assert!(long.starts_with("WORKING_DIR_NOT_FOUND working_dir: "), "{long}");
    assert!(long.len() < 400, "{long}");
}

#[tokio::test]
async fn a_loop_of_links_is_an_error() {
    let dir = TestDir::new();
    symlink("b", dir.root.join("a")).expect("made");
    symlink("a", dir.root.join("b")).expect("made");
    let error = dir.refused("ROOT/a").await;
    assert_eq!(
        error,
        "WORKING_DIR_NOT_FOUND working_dir: \"ROOT/a\" cannot be read; name another directory"
    );
}

/// Otherwise anybody could probe for files in directories that are not allowed.
#[tokio::test]
async fn missing_directories_that_are_not_allowed_are_not_revealed() {
    let dir = TestDir::new();
    for path in ["/etc/nowhere", "/etc/hostname", "/nowhere"] {
        let expected = format!(
            "WORKING_DIR_NOT_ALLOWED working_dir: {path} is not allowed; allowed: ROOT and \
             below; the user can add it to `allowed` under [files] in config.toml"
        );
        assert_eq!(dir.refused(path).await, expected);
    }
}
