use super::*;

fn located(args: &[&str]) -> Option<(String, Vec<String>)> {
    let home = tempfile::tempdir().expect("a directory");
    let root = home.path().canonicalize().expect("a path");
    for file in ["in/one.txt", "in/deep/two.txt", "out/three.txt"] {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, "").expect("written");
    }
    std::os::unix::fs::symlink("../out/three.txt", root.join("in/link")).expect("a link");
    let policy = WorkingDirPolicy {
        allowed: vec![root.join("in")],
        home: Some(root.clone()),
        ..WorkingDirPolicy::default()
    };
    let args = args.iter().map(|arg| arg.replace("{root}", &root.to_string_lossy())).collect();
    let (dir, args) = locate(args, &policy)?;
    let short = |path: &str| path.replace(&*root.to_string_lossy(), "{root}");
    Some((short(&dir.to_string_lossy()), args.iter().map(|arg| short(arg)).collect()))
}

#[track_caller]
fn check(args: &[&str], dir: &str, expected: &[&str]) {
    let expected = expected.iter().map(|arg| (*arg).to_owned()).collect();
    assert_eq!(located(args), Some((dir.to_owned(), expected)), "{args:?}");
}

#[test]
fn files_are_named_by_their_real_paths() {
    check(&["--fast", "~/in/one.txt", "5"], "{root}/in", &["--fast", "{root}/in/one.txt", "5"]);
    check(&["{root}/in/deep/two.txt"], "{root}/in/deep", &["{root}/in/deep/two.txt"]);
    let both = ["{root}/in/deep/two.txt", "{root}/in/one.txt"];
    check(&["~/in/deep/two.txt", "~/in/one.txt"], "{root}/in", &both);
    let one = ["{root}/in/one.txt", "~/out/three.txt"];
    check(&["~/in/one.txt", "~/out/three.txt"], "{root}/in", &one);
}

#[test]
fn other_arguments_name_no_files() {
    for arg in ["~/out/three.txt", "~/in/none", "~/in/deep", "~/in/link", "/", "~/in/../in/one.txt"]
    {
        assert_eq!(located(&[arg]), None, "{arg}");
    }
}
