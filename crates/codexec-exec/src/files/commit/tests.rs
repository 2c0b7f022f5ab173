use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use tempfile::TempDir;

use super::*;

/// A user's project and an upper layer, written the way overlayfs writes one.
struct TestProject {
    home: TempDir,
    since: FileTime,
    ledger: CommitLedger,
    let_through: Vec<String>,
    max_bytes: u64,
    round: u32,
}

impl TestProject {
    /// Creates a project with these files, and a guest that starts now.
    fn new(files: &[(&str, &str)]) -> TestProject {
        let home = TempDir::new().unwrap();
        for folder in ["project", "upper"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        for (path, text) in files {
            write(&home.path().join("project").join(path), text);
        }
        let project = tree(&home.path().join("project"));
        let since = FileTime::after_all_changes(project.root()).unwrap();
        TestProject {
            home,
            since,
            ledger: CommitLedger::default(),
            let_through: Vec::new(),
            max_bytes: 1 << 20,
            round: 0,
        }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.home.path().join("project").join(path)
    }

    fn upper(&self, path: &str) -> PathBuf {
        self.home.path().join("upper").join(path)
    }

    fn copy_of(&self, path: &str) -> PathBuf {
        self.home.path().join(format!("kept-{}", self.round)).join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).unwrap_or_else(|error| error.kind().to_string())
    }

    /// Has the guest change a file of the user.
    fn guest_edits(&self, path: &str, text: &str) {
        write(&self.upper(path), text);
        self.mark_copy(path);
    }

    /// The guest moves a file that the user has. The deletion of the old path is apart from this.
    fn guest_moves(&self, from: &str, to: &str) {
        write(&self.upper(to), &self.text(from));
        let time = fs::metadata(self.file(from)).unwrap().modified().unwrap();
        File::options().write(true).open(self.upper(to)).unwrap().set_modified(time).unwrap();
        self.mark_copy(to);
    }

    /// Marks an entry as a copy of one of the user's, as overlayfs does.
    fn mark_copy(&self, path: &str) {
        setxattr(self.upper(path), "user.overlay.origin", b"", XattrFlags::empty()).unwrap();
    }

    fn guest_creates(&self, path: &str, text: &str) {
        write(&self.upper(path), text);
    }

    fn guest_makes_folder(&self, path: &str) {
        fs::create_dir_all(self.upper(path)).unwrap();
        setxattr(self.upper(path), "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
    }

    fn guest_deletes(&self, path: &str) {
        fs::create_dir_all(self.upper(path).parent().unwrap()).unwrap();
        mknodat(CWD, self.upper(path), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }

    fn commit(&mut self) -> FileChanges {
        self.round += 1;
        let (upper, target) = (tree(&self.upper("")), tree(&self.file("")));
        let keep = self.home.path().join(format!("kept-{}", self.round));
        Commit {
            upper: &upper,
            target: &target,
            since: self.since,
            ledger: &mut self.ledger,
            held_back: HeldBackRules::new(&target, &self.let_through),
            owner: None,
            max_bytes: self.max_bytes,
            copies: ArtifactCopies::new(&keep),
            report: ChangeReport::default(),
            progress: CommitProgress::default(),
        }
        .run()
    }
}

fn tree(path: &Path) -> DirTree {
    DirTree::new(OwnedFd::from(File::open(path).unwrap()))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns `verb path` for everything in the report.
fn reported(changes: &FileChanges) -> Vec<String> {
    let artifacts = [
        ("created", &changes.created),
        ("modified", &changes.modified),
        ("deleted", &changes.deleted),
    ];
    let files = artifacts
        .into_iter()
        .flat_map(|(verb, list)| list.iter().map(move |file| format!("{verb} {}", file.path)));
    let others = [("conflict", &changes.conflicts), ("held back", &changes.held_back)];
    let others = others
        .into_iter()
        .flat_map(|(verb, list)| list.iter().map(move |file| format!("{verb} {}", file.path)));
    files.chain(others).collect()
}

#[test]
fn only_the_guests_changes_are_committed() {
    let mut project =
        TestProject::new(&[("same", "s"), ("old", "o"), ("gone", "g"), ("d/deep", "x")]);
    project.guest_edits("old", "new");
    project.guest_creates("d/more", "m");
    project.guest_makes_folder("made");
    project.guest_creates("made/file", "f");
    project.guest_makes_folder("empty");
    project.guest_deletes("gone");
    fs::set_permissions(project.upper("made/file"), fs::Permissions::from_mode(0o6755)).unwrap();
    let changes = project.commit();
    assert_eq!(
        reported(&changes),
        ["created d/more", "created empty/", "created made/file", "modified old", "deleted gone"]
    );
    let texts = ["same", "old", "d/deep", "d/more", "made/file"].map(|path| project.text(path));
    assert_eq!(texts, ["s", "new", "x", "m", "f"]);
    assert!(!project.file("gone").exists() && project.file("empty").is_dir());
    // THREAT[FIL-4]
    let mode = fs::metadata(project.file("made/file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    let left: Vec<_> = fs::read_dir(project.file("")).unwrap().flatten().collect();
    assert_eq!(left.len(), 5, "nothing of ours is left: {left:?}");
}

/// THREAT[FIL-7]
#[test]
fn fil_7_changes_by_others_win() {
    let mut project = TestProject::new(&[("both", "1"), ("theirs", "1"), ("dir/a", "1")]);
    project.guest_edits("both", "guest");
    project.guest_creates("new", "guest");
    project.guest_deletes("theirs");
    project.guest_deletes("dir");
    for (path, text) in [("both", "user"), ("new", "user"), ("theirs", "user"), ("dir/b", "user")] {
        write(&project.file(path), text);
    }
    let changes = project.commit();
    assert_eq!(
        reported(&changes),
        ["conflict both", "conflict dir", "conflict new", "conflict theirs"]
    );
    let texts = ["both", "new", "theirs", "dir/b", "dir/a"].map(|path| project.text(path));
    assert_eq!(texts, ["user", "user", "user", "user", "1"]);
    for path in ["both", "new"] {
        assert_eq!(fs::read_to_string(project.copy_of(path)).unwrap(), "guest", "{path}");
    }
}

/// THREAT[FIL-7]
#[test]
fn fil_7_a_file_that_somebody_else_deleted_does_not_come_back() {
    let mut project = TestProject::new(&[("removed", "1"), ("other", "1")]);
    project.guest_edits("removed", "guest");
    project.guest_edits("other", "guest");
    fs::remove_file(project.file("removed")).unwrap();
    assert_eq!(reported(&project.commit()), ["modified other", "conflict removed"]);
    assert!(!project.file("removed").exists());
    assert_eq!(fs::read_to_string(project.copy_of("removed")).unwrap(), "guest");
}

/// THREAT[FIL-7]
#[test]
fn fil_7_a_folder_that_was_moved_in_is_not_deleted_with_the_one_around_it() {
    let mut project = TestProject::new(&[("build/old", "1"), ("precious/deep/file", "1")]);
    project.guest_deletes("build");
    fs::rename(project.file("precious"), project.file("build/precious")).unwrap();
    let changes = project.commit();
    assert_eq!(reported(&changes), ["conflict build"]);
    assert_eq!(project.text("build/precious/deep/file"), "1");
}

/// THREAT[FIL-7]
#[test]
fn fil_7_files_open_for_writing_are_not_replaced() {
    use std::io::Write as _;
    let mut project = TestProject::new(&[("log", "1"), ("note", "1")]);
    let mut log = File::options().append(true).open(project.file("log")).unwrap();
    project.guest_edits("log", "guest");
    project.guest_deletes("note");
    let mut note = File::options().append(true).open(project.file("note")).unwrap();
    assert_eq!(reported(&project.commit()), ["conflict log", "conflict note"]);
    log.write_all(b"2").unwrap();
    note.write_all(b"2").unwrap();
    assert_eq!((project.text("log").as_str(), project.text("note").as_str()), ("12", "12"));
}

/// THREAT[FIL-4]: the guest cannot set these bits; if it could, they would not arrive.
#[test]
fn fil_4_set_id_bits_are_not_committed() {
    let mut project = TestProject::new(&[("old", "1")]);
    for name in ["new", "old"] {
        write(&project.upper(name), "guest");
        fs::set_permissions(project.upper(name), fs::Permissions::from_mode(0o6755)).unwrap();
    }
    assert_eq!(reported(&project.commit()), ["created new", "modified old"]);
    for name in ["new", "old"] {
        let mode = fs::metadata(project.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "{name}");
    }
}

/// THREAT[FIL-5]
#[test]
fn fil_5_links_lead_nowhere_outside() {
    let mut project = TestProject::new(&[("d/file", "1")]);
    let links = [
        ("in", "d/file"),
        ("d/up", "../d"),
        ("d/out", "../../secret"),
        ("abs", "/etc/passwd"),
        ("sly", "d/../../x"),
        ("dot", "."),
    ];
    fs::create_dir(project.upper("d")).unwrap();
    for (name, goal) in links {
        symlink(goal, project.upper(name)).unwrap();
    }
    let changes = project.commit();
    assert_eq!(
        reported(&changes),
        [
            "created d/up",
            "created dot",
            "created in",
            "held back abs",
            "held back d/out",
            "held back sly"
        ]
    );
    for name in ["abs", "d/out", "sly"] {
        assert!(fs::symlink_metadata(project.file(name)).is_err(), "{name}");
    }
}

/// THREAT[FIL-5]
#[test]
fn fil_5_a_link_in_the_users_directory_is_not_written_through() {
    let mut project = TestProject::new(&[("sub/.keep", "")]);
    let victim = TempDir::new().unwrap();
    fs::write(victim.path().join("file"), "mine").unwrap();
    project.guest_edits("sub/file", "guest");
    project.guest_creates("sub/new", "guest");
    project.guest_deletes("sub/.keep");
    fs::rename(project.file("sub"), project.file("sub2")).unwrap();
    symlink(victim.path(), project.file("sub")).unwrap();
    let changes = project.commit();
    assert_eq!(changes.created.len() + changes.modified.len() + changes.deleted.len(), 0);
    assert_eq!(fs::read_to_string(victim.path().join("file")).unwrap(), "mine");
    assert!(!victim.path().join("new").exists());
    assert_eq!(fs::read_to_string(project.copy_of("sub/new")).unwrap(), "guest");
}

/// THREAT[FIL-5]: somebody replaces a folder by a link after the commit has looked at it.
#[test]
fn fil_5_no_entry_is_changed_through_a_link() {
    let project = TestProject::new(&[]);
    let victim = TempDir::new().unwrap();
    fs::write(victim.path().join("file"), "mine").unwrap();
    symlink(victim.path(), project.file("link")).unwrap();
    let target = tree(&project.file(""));
    let theirs = tree(victim.path()).find(Path::new("file")).unwrap().unwrap();
    let content = || EntryContent::Link(Path::new("goal"));
    let entry = || NewEntry { content: content(), mode: 0o644, owner: None, modified: None };
    let (new, file, folder) =
        (Path::new("link/new"), Path::new("link/file"), Path::new("link/folder"));
    assert!(entry_writer::create(&target, new, entry()).is_err());
    assert!(entry_writer::replace(&target, file, &theirs, entry()).is_err());
    assert!(entry_writer::remove(&target, file, &theirs).is_err());
    assert!(entry_writer::make_dirs(&target, folder, |_| 0o755, None).is_err());
    assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(victim.path().join("file")).unwrap(), "mine");
}

/// THREAT[FIL-8]
#[test]
fn fil_8_special_large_and_deep_files_are_held_back() {
    let mut project = TestProject::new(&[]);
    project.max_bytes = 10;
    project.guest_creates("small", "12345678");
    project.guest_creates("zlarge", "1234");
    let sparse = File::create(project.upper("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let pipe = project.upper("pipe");
    mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut deep = project.upper("deep");
    for _ in 0..MAX_DEPTH + 5 {
        deep.push("x");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(project.upper("closed"), "c").unwrap();
    fs::set_permissions(project.upper("closed"), fs::Permissions::from_mode(0o0)).unwrap();
    let changes = project.commit();
    let reported = reported(&changes);
    assert_eq!(reported[..2], ["created closed", "created small"], "{reported:?}");
    assert_eq!(
        reported[3..],
        ["held back pipe", "held back sparse", "held back zlarge"],
        "{reported:?}"
    );
    assert!(reported[2].starts_with("held back deep/x/x"), "{reported:?}");
    assert_eq!(project.text("small"), "12345678");
}

#[test]
fn a_recreated_folder_has_only_the_guests_files() {
    let mut project =
        TestProject::new(&[("d/old", "1"), ("d/both", "1"), ("f", "1"), ("e/x", "1")]);
    project.guest_makes_folder("d");
    project.guest_creates("d/both", "2");
    project.guest_makes_folder("f");
    project.guest_creates("f/in", "2");
    project.guest_creates("e", "file now");
    let changes = project.commit();
    assert_eq!(
        reported(&changes),
        [
            "created e",
            "created f/in",
            "modified d/both",
            "deleted d/old",
            "deleted e/x",
            "deleted f"
        ]
    );
    assert_eq!(["d/both", "f/in", "e"].map(|path| project.text(path)), ["2", "2", "file now"]);
    assert!(!project.file("d/old").exists());
}

/// A session commits the same layer again and again.
#[test]
fn each_commit_does_only_what_is_new() {
    let mut project = TestProject::new(&[("a", "1")]);
    project.guest_edits("a", "2");
    project.guest_makes_folder("made");
    project.guest_creates("made/x", "1");
    project.guest_creates(".envrc", "evil");
    assert_eq!(reported(&project.commit()), ["created made/x", "modified a", "held back .envrc"]);
    assert_eq!(reported(&project.commit()), Vec::<String>::new());
    fs::write(project.upper("a"), "3").unwrap();
    project.guest_creates("made/y", "1");
    assert_eq!(reported(&project.commit()), ["created made/y", "modified a"]);
    // The guest deletes what it created itself, after all of it was committed.
    fs::remove_dir_all(project.upper("made")).unwrap();
    project.guest_deletes("made");
    assert_eq!(reported(&project.commit()), ["deleted made/x", "deleted made/y"]);
    assert!(!project.file("made").exists());
    // Somebody creates a folder of that name: the guest does not see it, and does not delete it.
    write(&project.file("made/theirs"), "1");
    assert_eq!(reported(&project.commit()), Vec::<String>::new());
    assert_eq!(project.text("made/theirs"), "1");
    fs::write(project.upper("a"), "4").unwrap();
    fs::write(project.file("a"), "theirs").unwrap();
    assert_eq!(reported(&project.commit()), ["conflict a"]);
    assert_eq!(project.text("a"), "theirs");
}

#[test]
fn a_file_that_was_only_opened_is_not_written() {
    let mut project = TestProject::new(&[("a", "1")]);
    let before = fs::metadata(project.file("a")).unwrap();
    project.guest_edits("a", "1");
    let mode = before.permissions();
    fs::set_permissions(project.upper("a"), mode).unwrap();
    assert_eq!(reported(&project.commit()), Vec::<String>::new());
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(fs::metadata(project.file("a")).unwrap().ino(), before.ino());
}

/// THREAT[FIL-12]: whatever a guest moves is at one of its paths at least.
#[test]
fn fil_12_moved_files_arrive_and_leave() {
    let mut project =
        TestProject::new(&[("a", "A"), ("config", "old"), ("d/f", "F"), ("one", "1")]);
    project.guest_moves("a", "b");
    project.guest_deletes("a");
    project.guest_moves("config", "config.bak");
    project.guest_creates("config", "new");
    project.guest_moves("d/f", "sub/g");
    fs::write(project.upper("sub/g"), "changed").unwrap();
    project.guest_deletes("d");
    // A second name for a file that stays.
    project.guest_edits("one", "1");
    fs::hard_link(project.upper("one"), project.upper("two")).unwrap();
    let changes = project.commit();
    assert_eq!(
        reported(&changes),
        [
            "created b",
            "created config.bak",
            "created sub/g",
            "created two",
            "modified config",
            "deleted a",
            "deleted d/f"
        ]
    );
    let texts = ["b", "config", "config.bak", "sub/g", "one", "two"].map(|path| project.text(path));
    assert_eq!(texts, ["A", "new", "old", "changed", "1", "1"]);
}

/// THREAT[FIL-12]
#[test]
fn fil_12_what_was_moved_to_where_it_is_not_written_stays() {
    let files = [
        ("notes.md", "N"),
        ("sub/.git/HEAD", "H"),
        ("sub/CLAUDE.md", "C"),
        ("sub/x.py", "x = 1"),
        ("big", "0123456789"),
        ("gone/.vscode/tasks.json", "T"),
        ("gone/y", "Y"),
    ];
    let mut project = TestProject::new(&files);
    project.max_bytes = 9;
    project.guest_moves("notes.md", "AGENTS.md");
    project.guest_deletes("notes.md");
    project.guest_moves("big", "large");
    project.guest_deletes("big");
    // A folder is moved by copying: each file keeps its size and time.
    for file in [".git/HEAD", "CLAUDE.md", "x.py"] {
        let (from, to) =
            (project.file(&format!("sub/{file}")), project.upper(&format!("moved/{file}")));
        write(&to, &fs::read_to_string(&from).unwrap());
        let time = fs::metadata(&from).unwrap().modified().unwrap();
        File::options().write(true).open(&to).unwrap().set_modified(time).unwrap();
    }
    project.guest_deletes("sub");
    project.guest_deletes("gone");
    let changes = project.commit();
    assert_eq!(
        reported(&changes),
        [
            "created moved/x.py",
            "deleted gone/y",
            "deleted sub/x.py",
            "conflict big",
            "conflict notes.md",
            "held back AGENTS.md",
            "held back gone/.vscode",
            "held back large",
            "held back moved/.git",
            "held back moved/CLAUDE.md",
            "held back sub/.git",
            "held back sub/CLAUDE.md"
        ]
    );
    let stay = ["notes.md", "big", "sub/.git/HEAD", "sub/CLAUDE.md", "gone/.vscode/tasks.json"];
    assert_eq!(stay.map(|path| project.text(path)), ["N", "0123456789", "H", "C", "T"]);
}

/// THREAT[FIL-12]: an ordinary name keeps its file, too, if the new path cannot be written.
#[test]
fn fil_12_a_copied_folder_whose_parts_are_not_written_keeps_them() {
    let mut project = TestProject::new(&[("lib/a.txt", "A"), ("lib/b.txt", "B")]);
    for file in ["a.txt", "b.txt"] {
        let to = project.upper(&format!("node_modules/{file}"));
        write(&to, &project.text(&format!("lib/{file}")));
        let time = fs::metadata(project.file(&format!("lib/{file}"))).unwrap().modified().unwrap();
        File::options().write(true).open(&to).unwrap().set_modified(time).unwrap();
    }
    project.guest_deletes("lib");
    let changes = project.commit();
    assert_eq!(
        reported(&changes),
        ["conflict lib/a.txt", "conflict lib/b.txt", "held back node_modules"]
    );
    assert_eq!(
        (project.text("lib/a.txt").as_str(), project.text("lib/b.txt").as_str()),
        ("A", "B")
    );
}

/// THREAT[FIL-7]
#[test]
fn fil_7_a_folder_that_somebody_else_exchanged_is_not_written() {
    let mut project =
        TestProject::new(&[("v1/s/f", "1"), ("v1/s/del", "1"), ("v2/s/f", "2"), ("v2/s/del", "2")]);
    project.guest_edits("v1/s/f", "guest");
    project.guest_deletes("v1/s/del");
    project.mark_copy("v1");
    project.mark_copy("v1/s");
    fs::rename(project.file("v1"), project.file("v0")).unwrap();
    fs::rename(project.file("v2"), project.file("v1")).unwrap();
    assert_eq!(reported(&project.commit()), ["conflict v1"]);
    assert_eq!(["v1/s/f", "v1/s/del", "v0/s/f"].map(|path| project.text(path)), ["2", "2", "1"]);
    assert_eq!(fs::read_to_string(project.copy_of("v1/s/f")).unwrap(), "guest");
}

#[test]
fn new_folders_are_made_even_if_they_are_empty() {
    let mut project = TestProject::new(&[("old/x", "1")]);
    fs::create_dir_all(project.upper("new/deep")).unwrap();
    fs::create_dir(project.upper("old")).unwrap();
    project.mark_copy("old");
    fs::create_dir(project.upper("old/in")).unwrap();
    assert_eq!(reported(&project.commit()), ["created new/deep/", "created old/in/"]);
    assert!(project.file("new/deep").is_dir() && project.file("old/in").is_dir());
    // A folder that somebody else deleted does not come back by itself.
    let mut project = TestProject::new(&[("old/x", "1")]);
    fs::create_dir(project.upper("old")).unwrap();
    project.mark_copy("old");
    fs::remove_dir_all(project.file("old")).unwrap();
    assert_eq!(reported(&project.commit()), Vec::<String>::new());
    assert!(!project.file("old").exists());
}

/// THREAT[FIL-12]: a stash stays in the sandbox, so what was stashed stays in the directory.
#[test]
fn fil_12_what_was_stashed_inside_stays_outside() {
    let mut project =
        TestProject::new(&[("g/.git/HEAD", "h"), ("g/work", "uncommitted"), ("other", "1")]);
    project.guest_creates("g/.git/refs/stash", "0123");
    project.guest_edits("g/work", "committed");
    project.guest_edits("other", "2");
    let changes = project.commit();
    assert_eq!(reported(&changes), ["modified other", "held back g/.git", "held back g/work"]);
    assert_eq!(project.text("g/work"), "uncommitted");
    // Once the stash is popped, there is nothing to wait for.
    fs::remove_file(project.upper("g/.git/refs/stash")).unwrap();
    fs::write(project.upper("g/work"), "uncommitted, and more").unwrap();
    assert_eq!(reported(&project.commit()), ["modified g/work"]);
}

/// THREAT[FIL-12]: one that is replaced by a folder of its own name is not lost on the way.
#[test]
fn fil_12_a_file_that_was_moved_into_a_folder_of_its_name_stays() {
    let mut project = TestProject::new(&[("f", "precious")]);
    project.guest_makes_folder("f");
    project.guest_moves("f", "f/old");
    assert_eq!(reported(&project.commit()), ["conflict f"]);
    assert_eq!(project.text("f"), "precious");
}

#[test]
fn the_users_attributes_stay_when_a_file_is_modified() {
    let mut project = TestProject::new(&[("f", "1")]);
    setxattr(project.file("f"), "user.tag", b"mine", XattrFlags::empty()).unwrap();
    project.since = FileTime::after_all_changes(tree(&project.file("")).root()).unwrap();
    project.guest_edits("f", "2");
    assert_eq!(reported(&project.commit()), ["modified f"]);
    let mut value = [0_u8; 8];
    let length = rustix::fs::getxattr(project.file("f"), "user.tag", &mut value).unwrap();
    assert_eq!(&value[..length], b"mine");
}
