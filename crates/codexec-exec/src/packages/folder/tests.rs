use tempfile::TempDir;

use super::*;

const BOUNDS: Bounds = Bounds { bytes: 1 << 20, files: 100 };

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

fn put(judge: &dyn Fn(&[Dist]) -> Result<(), TreeError>) -> Put<'_> {
    Put { bounds: BOUNDS, is_whole: false, wanted: None, judge }
}

#[test]
fn a_tree_takes_its_place_as_a_whole_and_is_seen_where_the_old_one_was() {
    let home = TempDir::new().expect("a folder");
    let folder = Folder::at(&home.path().join("root"));
    let shown = folder.shown().expect("made");
    // As a mount does, this holds on to the folder that is shown, not to its name.
    let held = File::open(&shown).expect("opened");
    let held = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held)));
    let fine = |_: &[Dist]| Ok(());
    for (name, version) in [("one", "1.0"), ("two", "1.0"), ("one", "2.0")] {
        let from = new_package(home.path(), name, version);
        folder.put(Language::Python, &from, &put(&fine)).expect("put");
    }
    let listed = folder.installed(Language::Python);
    let listed: Vec<_> =
        listed.iter().map(|dist| (dist.name.as_str(), dist.version.as_str())).collect();
    assert_eq!(listed, [("one", "2.0"), ("two", "1.0")]);
    assert_eq!(fs::read_to_string(held.join("python/one.py")).expect("seen"), "2.0");
    assert!(!held.join("python/one-1.0.dist-info").exists());
}

#[test]
fn what_is_refused_at_the_end_changes_nothing() {
    let home = TempDir::new().expect("a folder");
    let folder = Folder::at(&home.path().join("root"));
    folder.shown().expect("made");
    let denied = |_: &[Dist]| Err(TreeError::Denied("one".to_owned()));
    let from = new_package(home.path(), "one", "1.0");
    assert!(folder.put(Language::Python, &from, &put(&denied)).is_err());
    assert_eq!(folder.installed(Language::Python), []);
    assert!(!home.path().join("root/next").exists());
}

#[test]
fn what_an_install_left_half_done_is_gone_with_the_next() {
    let home = TempDir::new().expect("a folder");
    let folder = Folder::at(&home.path().join("root"));
    folder.shown().expect("made");
    fs::create_dir_all(home.path().join("root/next/half")).expect("made");
    fs::write(home.path().join("root/wanted.json"), "{broken").expect("written");
    assert!(folder.wanted().is_empty());
    let fine = |_: &[Dist]| Ok(());
    let from = new_package(home.path(), "one", "1.0");
    folder.put(Language::Python, &from, &put(&fine)).expect("put");
    assert!(!home.path().join("root/shown/python/half").exists());
}

#[test]
fn one_install_at_a_time() {
    let home = TempDir::new().expect("a folder");
    let folder = Folder::at(&home.path().join("root"));
    let lock = folder.lock().expect("asked");
    assert!(lock.is_some());
    assert!(folder.lock().expect("asked").is_none());
    drop(lock);
    assert!(folder.lock().expect("asked").is_some());
}
