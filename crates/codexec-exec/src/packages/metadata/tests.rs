use tempfile::TempDir;

use super::*;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    fs::write(path, text).expect("written");
}

fn listed(language: Language, folder: &Path) -> Vec<String> {
    let dists = list_installed(language, folder).into_iter();
    dists.map(|dist| format!("{} {} {}", dist.key, dist.name, dist.version)).collect()
}

#[test]
fn pip_packages_are_known_by_their_own_files() {
    let folder = TempDir::new().expect("a folder");
    let about = |name: &str, text: &str| write(&folder.path().join(name).join("METADATA"), text);
    about("My.Pkg-1.0.dist-info", "Name: My.Pkg\nVersion: 1.0\n\nVersion: 2.0\n");
    about("no_version-1.dist-info", "Name: no-version\n\nVersion: 1\n");
    about("evil-1.dist-info", "Name: ../../x\nVersion: 1\n");
    about("odd-1.dist-info", "Name: odd\nVersion: 1 \u{202e} x\n");
    about("long-1.dist-info", &format!("Name: long\nVersion: {}\n", "1".repeat(1_000)));
    about("plain", "Name: plain\nVersion: 1\n");
    write(&folder.path().join("old.egg-info/PKG-INFO"), "Name: old\nVersion: 0.1\n");
    assert_eq!(listed(Language::Python, folder.path()), ["my-pkg My.Pkg 1.0", "old old 0.1"]);
    assert_eq!(listed(Language::Python, &folder.path().join("nowhere")), Vec::<String>::new());
}

#[test]
fn the_files_of_a_pip_package_are_inside_its_folder() {
    let folder = TempDir::new().expect("a folder");
    let info = folder.path().join("a-1.dist-info");
    write(&info.join("METADATA"), "Name: a\nVersion: 1\n");
    write(
        &info.join("RECORD"),
        "a/__init__.py,sha256=x,1\n\"a/b,c.py\",sha256=x,1\n../../bin/a,,\n/etc/passwd,,\nbroken\n",
    );
    let dist = list_installed(Language::Python, folder.path()).remove(0);
    let files = list_files(folder.path(), &dist);
    assert_eq!(files, ["a/__init__.py", "a/b,c.py", "a-1.dist-info"].map(PathBuf::from));
}

#[test]
fn npm_packages_are_known_by_where_they_are() {
    let folder = TempDir::new().expect("a folder");
    let about =
        |name: &str, text: &str| write(&folder.path().join(name).join("package.json"), text);
    about("plain", r#"{"name":"called otherwise","version":"1.0.0"}"#);
    about("@scope/inner", r#"{"version":"0.1.0","scripts":{"postinstall":"x"}}"#);
    about("broken", "{");
    about(".bin", "[]");
    let dists = list_installed(Language::Node, folder.path());
    assert_eq!(
        listed(Language::Node, folder.path()),
        ["@scope/inner @scope/inner 0.1.0", "plain plain 1.0.0"]
    );
    let with_scripts: Vec<bool> =
        dists.iter().map(|dist| has_scripts(folder.path(), dist)).collect();
    assert_eq!(with_scripts, [true, false]);
}
