use super::*;

/// A home with a project in it, both real paths.
struct Desk {
    _dir: tempfile::TempDir,
    home: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().canonicalize().expect("real").join("ann");
        std::fs::create_dir_all(home.join("work/project")).expect("made");
        Desk { _dir: dir, home }
    }

    fn place(&self, here: &str) -> Place {
        Place {
            cores: 2,
            user_home: Some(self.home.clone()),
            state: self.home.join(".codexec"),
            here: Some(self.home.join(here)),
            variable: |_| None,
        }
    }

    /// What is allowed then, relative to home.
    #[track_caller]
    fn check(&self, here: &str, allowed: Option<&[&str]>, expected: &[&str]) {
        let allowed = allowed.map(|list| list.iter().map(PathBuf::from).collect());
        let files = files(&file::Files { allowed, ..file::Files::default() }, &self.place(here));
        let expected: Vec<PathBuf> = expected.iter().map(|path| self.home.join(path)).collect();
        assert_eq!(files.allowed, expected);
    }
}

#[test]
fn by_default_it_is_where_we_were_started() {
    let desk = Desk::new();
    desk.check("work", None, &["work"]);
    desk.check("work", Some(&["."]), &["work"]);
    let files = files(&file::Files::default(), &desk.place("work"));
    assert!(files.is_writable);
    assert!(files.judge(&desk.home.join("work/project")).is_ok());
}

#[test]
fn being_started_at_home_or_above_or_in_private_allows_nothing() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.home.join(".config/app")).expect("made");
    for here in ["", "..", "/", "/etc", "/proc", ".config/app", "nowhere"] {
        desk.check(here, None, &[]);
        desk.check(here, Some(&["."]), &[]);
    }
}

#[test]
fn entries_are_found_from_home_and_from_where_we_were_started() {
    let desk = Desk::new();
    desk.check("", Some(&["~/work"]), &["work"]);
    desk.check("work", Some(&["project", "./project"]), &["work/project", "work/project"]);
    desk.check("work", Some(&["../work/project"]), &["work/project"]);
    desk.check("work", Some(&[]), &[]);
    // Whoever writes `~` means what is in it; it itself stays refused, and what is private too.
    desk.check("work", Some(&["~"]), &[""]);
    let all = file::Files {
        allowed: Some(vec!["~".into()]),
        writable: Some(false),
        ..file::Files::default()
    };
    let files = files(&all, &desk.place("work"));
    assert!(!files.is_writable);
    assert!(files.judge(&desk.home.join("work")).is_ok());
    assert!(files.judge(&desk.home).is_err());
    assert!(files.judge(&desk.home.join(".ssh")).is_err());
}

#[test]
fn entries_that_are_of_no_use_are_left_out() {
    let desk = Desk::new();
    std::fs::write(desk.home.join("a.txt"), "").expect("written");
    desk.check("work", Some(&["nowhere", "~/a.txt", "/etc", "~/work"]), &["work"]);
}

#[test]
fn links_are_followed_before_anything_is_judged() {
    let desk = Desk::new();
    std::fs::create_dir(desk.home.join(".ssh")).expect("made");
    std::os::unix::fs::symlink(desk.home.join(".ssh"), desk.home.join("work/keys")).expect("made");
    desk.check("work", Some(&["keys"]), &[]);
    // A private directory that is a link somewhere else is forbidden where it is.
    std::fs::create_dir(desk.home.join("dotfiles")).expect("made");
    std::os::unix::fs::symlink(desk.home.join("dotfiles"), desk.home.join(".aws")).expect("made");
    let forbidden = forbidden(&desk.place("work"));
    assert!(forbidden.contains(&desk.home.join("dotfiles")), "{forbidden:?}");
}

#[test]
fn what_is_private_is_forbidden_whether_it_is_there_or_not() {
    let desk = Desk::new();
    let forbidden = forbidden(&desk.place("work"));
    for name in PRIVATE.iter().chain(&[".codexec"]) {
        assert!(forbidden.contains(&desk.home.join(name)), "{name}");
    }
    for path in ["/etc", "/proc", "/sys", "/dev", "/root"] {
        assert!(forbidden.contains(&PathBuf::from(path)), "{path}");
    }
}

#[test]
fn who_lives_in_a_system_directory_works_there() {
    let place = Place {
        cores: 2,
        user_home: Some("/root".into()),
        state: "/root/.codexec".into(),
        here: None,
        variable: |_| None,
    };
    let forbidden = forbidden(&place);
    assert!(!forbidden.contains(&PathBuf::from("/root")));
    assert!(forbidden.iter().any(|path| path.ends_with(".ssh")));
    let files = Files { allowed: vec!["/root".into()], forbidden, is_writable: true };
    assert!(files.judge(Path::new("/root/project")).is_ok());
    assert!(files.judge(Path::new("/root")).is_err());
}

#[test]
fn without_a_home_the_machine_is_still_forbidden() {
    let place = Place {
        cores: 2,
        user_home: None,
        state: "/nowhere/codexec".into(),
        here: Some("/".into()),
        variable: |_| None,
    };
    let files = files(&file::Files::default(), &place);
    assert_eq!(files.allowed, Vec::<PathBuf>::new());
    assert!(files.forbidden.contains(&PathBuf::from("/etc")));
    assert!(files.forbidden.contains(&PathBuf::from("/nowhere/codexec")));
}
