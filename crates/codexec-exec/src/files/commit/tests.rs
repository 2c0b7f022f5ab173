use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use tempfile::TempDir;

use super::*;

/// A user's project and an upper layer, written the way overlayfs writes one.
struct Desk {
    home: TempDir,
    since: Moment,
    ledger: Ledger,
    let_through: Vec<String>,
    max_bytes: u64,
    round: u32,
}

impl Desk {
    /// Creates a project with these files, and a guest that starts now.
    fn new(files: &[(&str, &str)]) -> Desk {
        let home = TempDir::new().unwrap();
        for folder in ["project", "upper"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        for (path, text) in files {
            write(&home.path().join("project").join(path), text);
        }
        let project = tree(&home.path().join("project"));
        let since = Moment::after_all_changes(project.root()).unwrap();
        Desk {
            home,
            since,
            ledger: Ledger::default(),
            let_through: Vec::new(),
            max_bytes: 1 << 20,
            round: 0,
        }
    }

    fn project(&self, path: &str) -> PathBuf {
        self.home.path().join("project").join(path)
    }

    fn upper(&self, path: &str) -> PathBuf {
        self.home.path().join("upper").join(path)
    }

    fn kept(&self, path: &str) -> PathBuf {
        self.home.path().join(format!("kept-{}", self.round)).join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.project(path)).unwrap_or_else(|error| error.kind().to_string())
    }

    /// Has the guest change a file of the user.
    fn guest_edits(&self, path: &str, text: &str) {
        write(&self.upper(path), text);
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

    fn commit(&mut self) -> Changes {
        self.round += 1;
        let (upper, target) = (tree(&self.upper("")), tree(&self.project("")));
        let keep = self.home.path().join(format!("kept-{}", self.round));
        Commit {
            upper: &upper,
            target: &target,
            since: self.since,
            ledger: &mut self.ledger,
            let_through: &self.let_through,
            owner: None,
            max_bytes: self.max_bytes,
            kept: KeptFiles::new(&keep),
            listing: Listing::default(),
        }
        .run()
    }
}

fn tree(path: &Path) -> Tree {
    Tree::new(OwnedFd::from(File::open(path).unwrap()))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns `verb path` for everything in the report.
fn told(changes: &Changes) -> Vec<String> {
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
fn what_the_guest_wrote_and_nothing_else_changes() {
    let mut desk = Desk::new(&[("same", "s"), ("old", "o"), ("gone", "g"), ("d/deep", "x")]);
    desk.guest_edits("old", "new");
    desk.guest_creates("d/more", "m");
    desk.guest_makes_folder("made");
    desk.guest_creates("made/file", "f");
    desk.guest_makes_folder("empty");
    desk.guest_deletes("gone");
    fs::set_permissions(desk.upper("made/file"), fs::Permissions::from_mode(0o6755)).unwrap();
    let changes = desk.commit();
    assert_eq!(
        told(&changes),
        ["created d/more", "created made/file", "modified old", "deleted gone"]
    );
    let texts = ["same", "old", "d/deep", "d/more", "made/file"].map(|path| desk.text(path));
    assert_eq!(texts, ["s", "new", "x", "m", "f"]);
    assert!(!desk.project("gone").exists() && desk.project("empty").is_dir());
    // THREAT[FIL-4]
    let mode = fs::metadata(desk.project("made/file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    let left: Vec<_> = fs::read_dir(desk.project("")).unwrap().flatten().collect();
    assert_eq!(left.len(), 5, "nothing of ours is left: {left:?}");
}

/// THREAT[FIL-7]
#[test]
fn fil_7_what_somebody_else_changed_meanwhile_stays() {
    let mut desk = Desk::new(&[("both", "1"), ("theirs", "1"), ("removed", "1"), ("dir/a", "1")]);
    for path in ["both", "removed"] {
        desk.guest_edits(path, "guest");
    }
    desk.guest_creates("new", "guest");
    desk.guest_deletes("theirs");
    desk.guest_deletes("dir");
    for (path, text) in [("both", "user"), ("new", "user"), ("theirs", "user"), ("dir/b", "user")] {
        write(&desk.project(path), text);
    }
    fs::remove_file(desk.project("removed")).unwrap();
    let changes = desk.commit();
    assert_eq!(
        told(&changes),
        ["conflict both", "conflict dir", "conflict new", "conflict removed", "conflict theirs"]
    );
    let texts = ["both", "new", "theirs", "dir/b", "dir/a"].map(|path| desk.text(path));
    assert_eq!(texts, ["user", "user", "user", "user", "1"]);
    assert!(!desk.project("removed").exists());
    for path in ["both", "new", "removed"] {
        assert_eq!(fs::read_to_string(desk.kept(path)).unwrap(), "guest", "{path}");
    }
}

/// THREAT[FIL-7]
#[test]
fn fil_7_a_folder_that_was_moved_in_is_not_deleted_with_the_one_around_it() {
    let mut desk = Desk::new(&[("build/old", "1"), ("precious/deep/file", "1")]);
    desk.guest_deletes("build");
    fs::rename(desk.project("precious"), desk.project("build/precious")).unwrap();
    let changes = desk.commit();
    assert_eq!(told(&changes), ["conflict build"]);
    assert_eq!(desk.text("build/precious/deep/file"), "1");
}

/// THREAT[FIL-7]
#[test]
fn fil_7_whoever_still_writes_to_a_file_keeps_it() {
    use std::io::Write as _;
    let mut desk = Desk::new(&[("log", "1"), ("note", "1")]);
    let mut log = File::options().append(true).open(desk.project("log")).unwrap();
    desk.guest_edits("log", "guest");
    desk.guest_deletes("note");
    let mut note = File::options().append(true).open(desk.project("note")).unwrap();
    assert_eq!(told(&desk.commit()), ["conflict log", "conflict note"]);
    log.write_all(b"2").unwrap();
    note.write_all(b"2").unwrap();
    assert_eq!((desk.text("log").as_str(), desk.text("note").as_str()), ("12", "12"));
}

/// THREAT[FIL-5]
#[test]
fn fil_5_links_lead_nowhere_outside() {
    let mut desk = Desk::new(&[("d/file", "1")]);
    let links = [
        ("in", "d/file"),
        ("d/up", "../d"),
        ("d/out", "../../secret"),
        ("abs", "/etc/passwd"),
        ("sly", "d/../../x"),
        ("dot", "."),
    ];
    fs::create_dir(desk.upper("d")).unwrap();
    for (name, goal) in links {
        symlink(goal, desk.upper(name)).unwrap();
    }
    let changes = desk.commit();
    assert_eq!(
        told(&changes),
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
        assert!(fs::symlink_metadata(desk.project(name)).is_err(), "{name}");
    }
}

/// THREAT[FIL-5]
#[test]
fn fil_5_a_link_in_the_users_directory_is_not_written_through() {
    let mut desk = Desk::new(&[("sub/.keep", "")]);
    let victim = TempDir::new().unwrap();
    fs::write(victim.path().join("file"), "mine").unwrap();
    desk.guest_edits("sub/file", "guest");
    desk.guest_creates("sub/new", "guest");
    desk.guest_deletes("sub/.keep");
    fs::rename(desk.project("sub"), desk.project("sub2")).unwrap();
    symlink(victim.path(), desk.project("sub")).unwrap();
    let changes = desk.commit();
    assert_eq!(changes.created.len() + changes.modified.len() + changes.deleted.len(), 0);
    assert_eq!(fs::read_to_string(victim.path().join("file")).unwrap(), "mine");
    assert!(!victim.path().join("new").exists());
    assert_eq!(fs::read_to_string(desk.kept("sub/new")).unwrap(), "guest");
}

#[test]
fn what_is_no_file_or_too_much_is_held_back() {
    let mut desk = Desk::new(&[]);
    desk.max_bytes = 10;
    desk.guest_creates("small", "12345678");
    desk.guest_creates("zlarge", "1234");
    let sparse = File::create(desk.upper("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let pipe = desk.upper("pipe");
    mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut deep = desk.upper("deep");
    for _ in 0..MAX_DEPTH + 5 {
        deep.push("x");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(desk.upper("closed"), "c").unwrap();
    fs::set_permissions(desk.upper("closed"), fs::Permissions::from_mode(0o0)).unwrap();
    let changes = desk.commit();
    let told = told(&changes);
    assert_eq!(told[..2], ["created closed", "created small"], "{told:?}");
    assert_eq!(told[3..], ["held back pipe", "held back sparse", "held back zlarge"], "{told:?}");
    assert!(told[2].starts_with("held back deep/x/x"), "{told:?}");
    assert_eq!(desk.text("small"), "12345678");
}

#[test]
fn a_folder_that_was_made_anew_has_only_what_the_guest_put_there() {
    let mut desk = Desk::new(&[("d/old", "1"), ("d/both", "1"), ("f", "1"), ("e/x", "1")]);
    desk.guest_makes_folder("d");
    desk.guest_creates("d/both", "2");
    desk.guest_makes_folder("f");
    desk.guest_creates("f/in", "2");
    desk.guest_creates("e", "file now");
    let changes = desk.commit();
    assert_eq!(
        told(&changes),
        [
            "created f/in",
            "modified d/both",
            "modified e",
            "deleted d/old",
            "deleted e/x",
            "deleted f"
        ]
    );
    assert_eq!(["d/both", "f/in", "e"].map(|path| desk.text(path)), ["2", "2", "file now"]);
    assert!(!desk.project("d/old").exists());
}

/// A session commits the same layer again and again.
#[test]
fn each_commit_does_only_what_is_new() {
    let mut desk = Desk::new(&[("a", "1")]);
    desk.guest_edits("a", "2");
    desk.guest_makes_folder("made");
    desk.guest_creates("made/x", "1");
    desk.guest_creates(".envrc", "evil");
    assert_eq!(told(&desk.commit()), ["created made/x", "modified a", "held back .envrc"]);
    assert_eq!(told(&desk.commit()), Vec::<String>::new());
    fs::write(desk.upper("a"), "3").unwrap();
    desk.guest_creates("made/y", "1");
    assert_eq!(told(&desk.commit()), ["created made/y", "modified a"]);
    // The guest deletes what it created itself, after all of it was committed.
    fs::remove_dir_all(desk.upper("made")).unwrap();
    desk.guest_deletes("made");
    assert_eq!(told(&desk.commit()), ["deleted made/x", "deleted made/y"]);
    assert!(!desk.project("made").exists());
    // Somebody creates a folder of that name: the guest does not see it, and does not delete it.
    write(&desk.project("made/theirs"), "1");
    assert_eq!(told(&desk.commit()), Vec::<String>::new());
    assert_eq!(desk.text("made/theirs"), "1");
    fs::write(desk.upper("a"), "4").unwrap();
    fs::write(desk.project("a"), "theirs").unwrap();
    assert_eq!(told(&desk.commit()), ["conflict a"]);
    assert_eq!(desk.text("a"), "theirs");
}

#[test]
fn a_file_that_was_only_opened_is_not_written() {
    let mut desk = Desk::new(&[("a", "1")]);
    let before = fs::metadata(desk.project("a")).unwrap();
    desk.guest_edits("a", "1");
    let mode = before.permissions();
    fs::set_permissions(desk.upper("a"), mode).unwrap();
    assert_eq!(told(&desk.commit()), Vec::<String>::new());
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(fs::metadata(desk.project("a")).unwrap().ino(), before.ino());
}
