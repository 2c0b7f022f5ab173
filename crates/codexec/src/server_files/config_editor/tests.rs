use std::os::unix::fs::PermissionsExt as _;

use super::*;

const TEXT: &str = "# mine\n[limits]\nmemory-mib = 64 # little\n\n[servers.b]\ncommand = \"x\" # why\n\n[servers.a]\ntrust = \"ask\"\n";

fn name(text: &str) -> ServerName {
    ServerName::new(text).expect("a name")
}

fn open(folder: &Path, text: &str) -> ConfigEditor {
    let path = folder.join("config.toml");
    std::fs::write(&path, text).expect("written");
    ConfigEditor::open(&path).expect("opened")
}

#[test]
fn comments_and_order_stay() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut file = open(folder.path(), TEXT);
    assert!(file.defines(&name("b")) && file.has(&name("a")) && !file.defines(&name("a")));
    file.set_enabled(&name("b"), Some(false)).expect("set");
    file.set_enabled(&name("c"), Some(false)).expect("set");
    file.write().expect("written");
    let expected =
        TEXT.replace("# why\n", "# why\nenabled = false\n") + "\n[servers.c]\nenabled = false\n";
    let path = folder.path().join("config.toml");
    assert_eq!(std::fs::read_to_string(&path).expect("there"), expected);
    assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    file.set_enabled(&name("b"), None).expect("set");
    file.remove(&name("c")).expect("removed");
    assert_eq!(file.text(), TEXT);
}

#[test]
fn links_stay_and_missing_files_are_created() {
    let folder = tempfile::tempdir().expect("a directory");
    let real = folder.path().join("dots/config.toml");
    let mut file = ConfigEditor::open(&real).expect("opened");
    file.set_enabled(&name("a"), Some(true)).expect("set");
    file.write().expect("written");
    let link = folder.path().join("config.toml");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let mut file = ConfigEditor::open(&link).expect("opened");
    file.set_enabled(&name("a"), Some(false)).expect("set");
    file.write().expect("written");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&real).expect("there"), "[servers.a]\nenabled = false\n");
}

#[test]
fn entries_that_are_not_tables_are_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut file = open(folder.path(), "servers = 1\n");
    assert!(file.set_enabled(&name("a"), Some(true)).is_err());
    assert!(ConfigEditor::open(&folder.path().join("config.toml")).is_ok());
    assert!(open(folder.path(), "[servers]\na = 1\n").set_enabled(&name("a"), None).is_err());
}
