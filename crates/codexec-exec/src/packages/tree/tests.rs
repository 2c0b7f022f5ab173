use tempfile::TempDir;

use super::*;

const BOUNDS: TreeLimits = TreeLimits { bytes: 1 << 20, files: 100 };

fn folders() -> (TempDir, PathBuf, PathBuf) {
    let home = TempDir::new().expect("a folder");
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    fs::create_dir(&from).expect("made");
    (home, from, to)
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
}

#[test]
fn pkg_5_copied_files_have_our_modes_and_links_stay_inside() {
    let (home, from, to) = folders();
    write(&from.join("a/b/module.py"), "x", 0o600);
    write(&from.join("bin/run"), "x", 0o6711);
    write(&home.path().join("secret"), "secret", 0o600);
    for (link, leads_to) in [
        ("good", "a/b"),
        ("a/b/up", "../../bin/run"),
        ("a/here", "./b"),
        ("outside", "../secret"),
        ("absolute", "/etc/passwd"),
        ("a/b/far", "../../../secret"),
        // Through a link to its own folder, this would lead outside.
        ("dot", "."),
        ("a/sly", "b/../../../secret"),
        ("through", "dot/../secret"),
    ] {
        symlink(leads_to, from.join(link)).expect("linked");
    }
    let socket = std::os::unix::net::UnixListener::bind(from.join("socket")).expect("bound");
    let copied = copy_out(&from, &to, BOUNDS).expect("taken");
    drop(socket);
    assert_eq!(copied.left_out, 6, "{copied:?}");
    let mode =
        |path: &str| fs::symlink_metadata(to.join(path)).expect("there").permissions().mode();
    assert_eq!(mode("a/b/module.py") & 0o7777, 0o644);
    assert_eq!(mode("bin/run") & 0o7777, 0o755);
    assert_eq!(mode("a") & 0o7777, 0o755);
    for kept in ["good/module.py", "a/b/up", "a/here/module.py", "dot/bin/run"] {
        assert!(to.join(kept).exists(), "{kept}");
    }
    for gone in ["outside", "absolute", "a/b/far", "a/sly", "through", "socket"] {
        assert!(fs::symlink_metadata(to.join(gone)).is_err(), "{gone}");
    }
    let time = |root: &Path| {
        fs::metadata(root.join("a/b/module.py")).expect("there").modified().expect("a time")
    };
    assert_eq!(time(&from), time(&to), "compiled modules know their source by it");
}

#[test]
fn pkg_3_a_tree_has_bounds() {
    for (bytes, files, is_fine) in [(10, 3, true), (9, 3, false), (10, 2, false)] {
        let (_home, from, to) = folders();
        write(&from.join("a/one"), "12345", 0o644);
        write(&from.join("two"), "12345", 0o644);
        let copied = copy_out(&from, &to, TreeLimits { bytes, files });
        assert_eq!(copied.is_ok(), is_fine, "{bytes} {files}");
    }
    let (_home, from, to) = folders();
    let deep: PathBuf = std::iter::repeat_n("d", MAX_DEPTH + 1).collect();
    fs::create_dir_all(from.join(deep)).expect("made");
    let bounds = TreeLimits { bytes: 1, files: 1_000 };
    assert!(matches!(copy_out(&from, &to, bounds), Err(TreeError::TooBig)));
}

#[test]
fn merging_keeps_new_files_over_old_ones() {
    let (_home, from, to) = folders();
    write(&from.join("space/old.py"), "old", 0o644);
    write(&from.join("space/both.py"), "old", 0o644);
    write(&from.join("gone.py"), "old", 0o644);
    write(&to.join("space/both.py"), "new", 0o644);
    let without = BTreeSet::from([PathBuf::from("gone.py")]);
    let mut copied = CopiedTree::default();
    merge(&from, &to, &without, BOUNDS, &mut copied).expect("joined");
    let read = |path: &str| fs::read_to_string(to.join(path)).ok();
    assert_eq!(read("space/old.py").as_deref(), Some("old"));
    assert_eq!(read("space/both.py").as_deref(), Some("new"));
    assert_eq!(read("gone.py"), None);
    let tight = TreeLimits { bytes: 2, files: 100 };
    let (_home, from, to) = folders();
    write(&from.join("old.py"), "old", 0o644);
    fs::create_dir(&to).expect("made");
    assert!(merge(&from, &to, &without, tight, &mut CopiedTree::default()).is_err());
}
