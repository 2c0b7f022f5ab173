use super::*;

/// A temporary home directory with a project in it.
struct TestHome {
    _dir: tempfile::TempDir,
    home: PathBuf,
}

impl TestHome {
    fn new() -> TestHome {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().canonicalize().expect("real").join("ann");
        std::fs::create_dir_all(home.join("work/project")).expect("made");
        TestHome { _dir: dir, home }
    }

    fn host(&self, here: &str) -> HostEnvironment {
        HostEnvironment {
            cores: 2,
            user_home: Some(self.home.clone()),
            state_dir: self.home.join(".codexec"),
            current_dir: Some(self.home.join(here)),
            variable: |_| None,
        }
    }

    /// Checks the allowed directories, given relative to home.
    #[track_caller]
    fn check(&self, here: &str, allowed: Option<&[&str]>, expected: &[&str]) {
        let allowed = allowed.map(|list| list.iter().map(PathBuf::from).collect());
        let files = files(
            &file::FilesSection { allowed, ..file::FilesSection::default() },
            &self.host(here),
        );
        let expected: Vec<PathBuf> = expected.iter().map(|path| self.home.join(path)).collect();
        assert_eq!(files.allowed, expected);
    }
}

#[test]
fn the_default_is_the_current_directory() {
    let home_dir = TestHome::new();
    home_dir.check("work", None, &["work"]);
    home_dir.check("work", Some(&["."]), &["work"]);
    let files = files(&file::FilesSection::default(), &home_dir.host("work"));
    assert!(files.is_writable);
    assert!(files.check(&home_dir.home.join("work/project")).is_ok());
}

#[test]
fn starting_in_home_above_it_or_in_a_private_folder_allows_nothing() {
    let home_dir = TestHome::new();
    std::fs::create_dir_all(home_dir.home.join(".config/app")).expect("made");
    for here in ["", "..", "/", "/etc", "/proc", ".config/app", "nowhere"] {
        home_dir.check(here, None, &[]);
        home_dir.check(here, Some(&["."]), &[]);
    }
}

#[test]
fn entries_are_relative_to_home_or_the_current_directory() {
    let home_dir = TestHome::new();
    home_dir.check("", Some(&["~/work"]), &["work"]);
    home_dir.check("work", Some(&["project", "./project"]), &["work/project", "work/project"]);
    home_dir.check("work", Some(&["../work/project"]), &["work/project"]);
    home_dir.check("work", Some(&[]), &[]);
    // `~` allows the folders in it; the home directory itself and private folders stay refused.
    home_dir.check("work", Some(&["~"]), &[""]);
    let all = file::FilesSection {
        allowed: Some(vec!["~".into()]),
        writable: Some(false),
        ..file::FilesSection::default()
    };
    let files = files(&all, &home_dir.host("work"));
    assert!(!files.is_writable);
    assert!(files.check(&home_dir.home.join("work")).is_ok());
    assert!(files.check(&home_dir.home).is_err());
    assert!(files.check(&home_dir.home.join(".ssh")).is_err());
}

#[test]
fn unusable_entries_are_ignored() {
    let home_dir = TestHome::new();
    std::fs::write(home_dir.home.join("a.txt"), "").expect("written");
    home_dir.check("work", Some(&["nowhere", "~/a.txt", "/etc", "~/work"]), &["work"]);
}

#[test]
fn links_are_resolved_before_the_check() {
    let home_dir = TestHome::new();
    std::fs::create_dir(home_dir.home.join(".ssh")).expect("made");
    std::os::unix::fs::symlink(home_dir.home.join(".ssh"), home_dir.home.join("work/keys"))
        .expect("made");
    home_dir.check("work", Some(&["keys"]), &[]);
    // If a private directory is a link, its target is forbidden.
    std::fs::create_dir(home_dir.home.join("dotfiles")).expect("made");
    std::os::unix::fs::symlink(home_dir.home.join("dotfiles"), home_dir.home.join(".aws"))
        .expect("made");
    let forbidden = forbidden_paths(&home_dir.host("work"));
    assert!(forbidden.contains(&home_dir.home.join("dotfiles")), "{forbidden:?}");
}

#[test]
fn private_folders_are_forbidden_even_if_missing() {
    let home_dir = TestHome::new();
    let forbidden = forbidden_paths(&home_dir.host("work"));
    for name in PRIVATE.iter().chain(&[".codexec"]) {
        assert!(forbidden.contains(&home_dir.home.join(name)), "{name}");
    }
    for path in ["/etc", "/proc", "/sys", "/dev", "/root"] {
        assert!(forbidden.contains(&PathBuf::from(path)), "{path}");
    }
}

#[test]
fn a_home_in_a_system_directory_is_usable() {
    let host = HostEnvironment {
        cores: 2,
        user_home: Some("/root".into()),
        state_dir: "/root/.codexec".into(),
        current_dir: None,
        variable: |_| None,
    };
    let forbidden = forbidden_paths(&host);
    assert!(!forbidden.contains(&PathBuf::from("/root")));
    assert!(forbidden.iter().any(|path| path.ends_with(".ssh")));
    let files = WorkingDirPolicy {
        allowed: vec!["/root".into()],
        forbidden,
        is_writable: true,
        home: None,
    };
    assert!(files.check(Path::new("/root/project")).is_ok());
    assert!(files.check(Path::new("/root")).is_err());
}

#[test]
fn without_a_home_system_directories_stay_forbidden() {
    let host = HostEnvironment {
        cores: 2,
        user_home: None,
        state_dir: "/nowhere/codexec".into(),
        current_dir: Some("/".into()),
        variable: |_| None,
    };
    let files = files(&file::FilesSection::default(), &host);
    assert_eq!(files.allowed, Vec::<PathBuf>::new());
    assert!(files.forbidden.contains(&PathBuf::from("/etc")));
    assert!(files.forbidden.contains(&PathBuf::from("/nowhere/codexec")));
}
