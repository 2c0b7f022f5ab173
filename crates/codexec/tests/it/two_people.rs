//! A person and code at work in one repository at the same time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Client, need};

/// Files that both write to, and files that neither does.
const SHARED: usize = 10;
const STATIC: usize = 200;

/// A minute, or as long as somebody wants to watch.
fn time_at_work() -> Duration {
    let seconds = std::env::var("CODEXEC_TWO_PEOPLE_S").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(60))
}

fn git(repository: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .current_dir(repository)
        .args(["-c", "user.name=it", "-c", "user.email=it@localhost", "-c", "gc.auto=0"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    // Never creates: a file that is gone is somebody's decision.
    let mut file = File::options().append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// What the person does: edits, renames, commits, switches branches. Returns every line written.
fn person(at: &Path, is_over: &AtomicBool) -> Vec<String> {
    let mut written = Vec::new();
    for round in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let line = format!("person-{round}-end");
        let shared = at.join(format!("shared-{}.txt", round % SHARED));
        let away = at.join(format!("away-{}.txt", round % SHARED));
        match round % 7 {
            0 | 1 | 4 => {
                if append(&shared, &line).is_ok() {
                    written.push(line);
                }
            }
            2 => {
                fs::write(at.join(format!("own-{round}.txt")), format!("{line}\n")).expect("own");
                written.push(line);
            }
            3 => {
                git(at, &["add", "-A"]);
                git(at, &["commit", "-qm", &line]);
            }
            5 => {
                // Away and, some rounds later, back again.
                if away.exists() {
                    // Never over a file that code has made meanwhile.
                    let _ = Command::new("mv").arg("-n").args([&away, &shared]).output();
                } else {
                    let _ = fs::rename(&shared, &away);
                }
            }
            _ => {
                // On the branch only a file changes that no code writes to.
                let topic = format!("topic-{round}");
                let (is_there, said) = git(at, &["checkout", "-q", "-b", &topic]);
                assert!(is_there, "{said}");
                append(&at.join("branch-only.txt"), &line).expect("appended");
                let (is_committed, said) = git(at, &["commit", "-qm", &line, "branch-only.txt"]);
                assert!(is_committed, "{said}");
                written.push(line);
                let (is_back, said) = git(at, &["checkout", "-q", "main"]);
                assert!(is_back, "{said}");
                let (is_merged, said) = git(at, &["merge", "-q", "--ff-only", &topic]);
                assert!(is_merged || said.contains("fast-forward"), "{said}");
            }
        }
    }
    written
}

/// One line that code wrote, and whether the reply named its file as a conflict.
struct Written {
    line: String,
    was_conflict: bool,
}

/// What code in one language does, with a server of its own: one-shot runs, and a session.
fn code(language: &'static str, at: &Path, is_over: &AtomicBool) -> (Vec<Written>, Client) {
    let home = tempfile::tempdir().expect("a home");
    let settings = format!("[files]\nallowed = [{:?}]\n", at.display().to_string());
    let settings_file = home.path().join("settings.toml");
    fs::write(&settings_file, settings).expect("written");
    let mut client = Client::with(&json!({}), |command| {
        command.arg("--config").arg(&settings_file);
    });
    let mut written = Vec::new();
    for round in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let line = format!("{language}-{round}-end");
        // Into a file that both write to, in turns with one of its own.
        let name = match round % 3 {
            0 => format!("{language}-{round}.txt"),
            _ => format!("shared-{}.txt", (round * 7) % SHARED),
        };
        let text = match language {
            "bash" => {
                format!("echo {line} >> {name}; git -c safe.directory='*' log -1 --format=%h")
            }
            "python" => format!("with open({name:?}, 'a') as f: f.write('{line}\\n')"),
            _ => format!("require('fs').appendFileSync({name:?}, '{line}\\n')"),
        };
        let mut arguments = json!({"language": language, "code": text, "working_dir": at});
        if round % 2 == 1 {
            arguments["session"] = json!(format!("{language}-session"));
        }
        let said = client.call("execute_code", &arguments);
        assert!(!said.is_error, "{language} {round}: {}", said.text);
        let was_conflict = said.text.contains(&format!("conflict {name}: "));
        let is_told = said.text.contains(&format!(" {name} (")) || was_conflict;
        assert!(is_told, "{language} {round} wrote {name}: {}", said.text);
        written.push(Written { line, was_conflict });
    }
    (written, client)
}

/// All text below a folder.
fn all_text(folder: &Path) -> String {
    let mut text = String::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != ".git" {
                folders.push(path);
            } else if path.is_file() {
                text.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap_or_default()));
            }
        }
    }
    text
}

fn repository() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = fs::canonicalize(folder.path()).expect("a path");
    assert!(git(&at, &["init", "-q", "-b", "main"]).0);
    for n in 0..SHARED {
        fs::write(at.join(format!("shared-{n}.txt")), "begin\n").expect("written");
    }
    fs::create_dir(at.join("static")).expect("made");
    for n in 0..STATIC {
        fs::write(at.join(format!("static/{n}")), n.to_string()).expect("written");
    }
    fs::write(at.join("branch-only.txt"), "begin\n").expect("written");
    assert!(git(&at, &["add", "-A"]).0 && git(&at, &["commit", "-qm", "begin"]).0);
    (folder, at)
}

fn static_files(at: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, String)> {
    let entries = fs::read_dir(at.join("static")).expect("there").flatten();
    let about = |path: &Path| {
        let found = fs::metadata(path).expect("there");
        let text = fs::read_to_string(path).expect("text");
        (found.ino(), found.mtime(), found.mtime_nsec(), text)
    };
    entries.map(|entry| (entry.path(), about(&entry.path()))).collect()
}

/// THREAT[FIL-7]
#[test]
fn fil_7_a_person_and_code_at_work_in_one_repository_lose_nothing() {
    let has_git = Command::new("git").arg("--version").output().is_ok();
    if !need("git", has_git) {
        return;
    }
    let (_folder, at) = repository();
    let before = static_files(&at);
    let is_over = AtomicBool::new(false);
    let (lines, guests) = std::thread::scope(|scope| {
        let person = scope.spawn(|| person(&at, &is_over));
        let guests = ["bash", "python", "node"].map(|language| {
            scope.spawn({
                let (at, is_over) = (&at, &is_over);
                move || code(language, at, is_over)
            })
        });
        let until = Instant::now() + time_at_work();
        while Instant::now() < until && !person.is_finished() {
            std::thread::park_timeout(Duration::from_millis(100));
        }
        is_over.store(true, Ordering::Relaxed);
        let guests = guests.map(|guest| guest.join().expect("code"));
        (person.join().expect("the person"), guests)
    });

    let (is_clean, said) = git(&at, &["fsck", "--full", "--strict"]);
    assert!(is_clean && !said.contains("error"), "{said}");
    assert_eq!(static_files(&at), before, "files that neither wrote");
    let tree = all_text(&at) + &git(&at, &["log", "--all", "-p"]).1;
    for line in &lines {
        assert!(tree.contains(line.as_str()), "the person's {line} is lost");
    }
    for (written, client) in &guests {
        let artifacts = all_text(&client.home.path().join("state/artifacts"));
        for Written { line, was_conflict } in written {
            let is_there = match was_conflict {
                true => artifacts.contains(line.as_str()),
                false => tree.contains(line.as_str()),
            };
            assert!(is_there, "{line} is lost (conflict: {was_conflict})");
        }
        let conflicts = written.iter().filter(|written| written.was_conflict).count();
        let _ = writeln!(std::io::stderr(), "{} writes, {conflicts} conflicts", written.len());
        assert!(written.len() > conflicts, "something was written");
    }
    let names = fs::read_dir(&at).expect("there").flatten().map(|entry| entry.file_name());
    let ours: Vec<_> =
        names.filter(|name| name.to_string_lossy().starts_with(".codexec-")).collect();
    assert_eq!(ours, Vec::<std::ffi::OsString>::new(), "nothing of ours is left");
}
