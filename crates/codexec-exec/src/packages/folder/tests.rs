use tempfile::TempDir;

use super::*;

const BOUNDS: TreeLimits = TreeLimits { bytes: 1 << 20, files: 100 };

fn new_package(home: &Path, name: &str, version: &str) -> PathBuf {
    let from = home.join(format!("{name}-{version}"));
    let info = from.join(format!("{name}-{version}.dist-info"));
    fs::create_dir_all(&info).expect("made");
    fs::write(info.join("METADATA"), format!("Name: {name}\nVersion: {version}\n"))
        .expect("written");
    fs::write(info.join("RECORD"), format!("{name}.py,,\n")).expect("written");
    fs::write(from.join(format!("{name}.py")), version).expect("written");
    from
}

fn plan(judge: &dyn Fn(&[PackageInfo]) -> Result<(), TreeError>) -> PublishPlan<'_> {
    PublishPlan { bounds: BOUNDS, is_whole: false, wanted: None, judge }
}

#[test]
fn publishing_replaces_the_visible_tree_atomically() {
    let home = TempDir::new().expect("a folder");
    let folder = PackagesFolder::at(&home.path().join("root"));
    let shown = folder.make_shown_dir().expect("made");
    // Like a mount, this holds the directory itself, not its name.
    let held = File::open(&shown).expect("opened");
    let held = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held)));
    let fine = |_: &[PackageInfo]| Ok(());
    for (name, version) in [("one", "1.0"), ("two", "1.0"), ("one", "2.0")] {
        let from = new_package(home.path(), name, version);
        folder.publish(Language::Python, &from, &plan(&fine)).expect("put");
    }
    let listed = folder.list_installed(Language::Python);
    let listed: Vec<_> =
        listed.iter().map(|dist| (dist.name.as_str(), dist.version.as_str())).collect();
    assert_eq!(listed, [("one", "2.0"), ("two", "1.0")]);
    assert_eq!(fs::read_to_string(held.join("python/one.py")).expect("seen"), "2.0");
    assert!(!held.join("python/one-1.0.dist-info").exists());
}

#[test]
fn a_removed_package_leaves_the_others() {
    let home = TempDir::new().expect("a folder");
    let folder = PackagesFolder::at(&home.path().join("root"));
    let shown = folder.make_shown_dir().expect("made");
    let fine = |_: &[PackageInfo]| Ok(());
    for name in ["one", "two"] {
        let from = new_package(home.path(), name, "1.0");
        folder.publish(Language::Python, &from, &plan(&fine)).expect("put");
    }
    let name = |text: &str| PackageName::parse(Language::Python, text).expect("a name");
    assert_eq!(folder.remove(&name("three"), BOUNDS).expect("looked"), None);
    let removed = folder.remove(&name("One"), BOUNDS).expect("removed").expect("found");
    assert_eq!((removed.name.as_str(), removed.version.as_str()), ("one", "1.0"));
    let left: Vec<String> =
        folder.list_installed(Language::Python).into_iter().map(|dist| dist.name).collect();
    assert_eq!(left, ["two"]);
    assert!(!shown.join("python/one.py").exists() && shown.join("python/two.py").exists());
    // Of a Node package, everything in its folder goes, and npm no longer wants it.
    let from = home.path().join("npm");
    fs::create_dir_all(from.join("pad/lib")).expect("made");
    fs::write(from.join("pad/package.json"), "{\"version\": \"1.0.0\"}").expect("written");
    let wanted = BTreeMap::from([("pad".to_owned(), "pad@1.0.0".to_owned())]);
    let whole = PublishPlan { is_whole: true, wanted: Some(&wanted), ..plan(&fine) };
    folder.publish(Language::Node, &from, &whole).expect("put");
    let pad = PackageName::parse(Language::Node, "pad").expect("a name");
    assert!(folder.remove(&pad, BOUNDS).expect("removed").is_some());
    assert!(folder.list_installed(Language::Node).is_empty() && folder.read_requested().is_empty());
    assert!(!shown.join("node_modules/pad").exists());
}

#[test]
fn a_refused_tree_changes_nothing() {
    let home = TempDir::new().expect("a folder");
    let folder = PackagesFolder::at(&home.path().join("root"));
    folder.make_shown_dir().expect("made");
    let denied = |_: &[PackageInfo]| Err(TreeError::Denied("one".to_owned()));
    let from = new_package(home.path(), "one", "1.0");
    assert!(folder.publish(Language::Python, &from, &plan(&denied)).is_err());
    assert_eq!(folder.list_installed(Language::Python), []);
    assert!(!home.path().join("root/next").exists());
}

#[test]
fn leftovers_of_an_interrupted_install_are_removed() {
    let home = TempDir::new().expect("a folder");
    let folder = PackagesFolder::at(&home.path().join("root"));
    folder.make_shown_dir().expect("made");
    fs::create_dir_all(home.path().join("root/next/half")).expect("made");
    fs::write(home.path().join("root/wanted.json"), "{broken").expect("written");
    assert!(folder.read_requested().is_empty());
    let fine = |_: &[PackageInfo]| Ok(());
    let from = new_package(home.path(), "one", "1.0");
    folder.publish(Language::Python, &from, &plan(&fine)).expect("put");
    assert!(!home.path().join("root/shown/python/half").exists());
}

#[test]
fn one_install_at_a_time() {
    let home = TempDir::new().expect("a folder");
    let folder = PackagesFolder::at(&home.path().join("root"));
    let lock = folder.try_lock().expect("asked");
    assert!(lock.is_some());
    assert!(folder.try_lock().expect("asked").is_none());
    drop(lock);
    assert!(folder.try_lock().expect("asked").is_some());
}
