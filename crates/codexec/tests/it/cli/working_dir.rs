use super::{CliHome, refused};

#[test]
fn a_working_dir_is_explained() {
    let desk = CliHome::new(&[("a.txt", "")]);
    std::fs::create_dir_all(desk.path().join(".ssh")).expect("made");
    let check = |args: &[&str], expected: &str| {
        let ran = desk.run(&[&["exec", "-l", "bash", "1"], args].concat());
        assert_eq!(ran, refused(&format!("--working-dir: {expected}")), "{args:?}");
    };
    check(
        &["--working-dir", "nowhere"],
        "\"HOME/nowhere\" does not exist; name a directory that does",
    );
    check(&["-w", "a.txt"], "\"HOME/a.txt\" is not a directory; name the directory it is in");
    for path in [".", ".ssh"] {
        let ran = desk.run(&["exec", "-l", "bash", "-w", path, "1"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.ends_with("is private\n"), "{}", ran.stderr);
    }
    let ran = desk.run(&["exec", "-l", "ts", "-w", "/usr", "1"]);
    let no_files = "--working-dir: typescript code has no files; use python, bash or node";
    assert_eq!(ran, refused(no_files));
}
