//! A directory of the user's as a guest sees it: an overlay, at two paths, that can be renewed.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use codexec_exec::Workers;
use codexec_sandbox::{MountRequest, Mounter};
use codexec_types::{AdmissionRequest, Language, Outcome, Policy, ResolvedDir, WorkingDirPolicy};
use tempfile::TempDir;

use super::{LIMITS, Session, policy, request, with_workers};
use crate::support::codexec;

const PROGRAMS: [Language; 3] = [Language::Python, Language::Bash, Language::Node];

/// A directory of the user's.
struct Project {
    path: PathBuf,
    _at: TempDir,
}

impl Project {
    fn new() -> Project {
        let at = tempfile::tempdir().expect("a directory");
        let path = at.path().canonicalize().expect("a path").join("deep/project");
        fs::create_dir_all(path.join("sub")).expect("made");
        fs::write(path.join("note"), "old").expect("written");
        Project { path, _at: at }
    }

    fn resolve(&self) -> ResolvedDir {
        let found = fs::metadata(&self.path).expect("there");
        let (path, device, inode) = (self.path.clone(), found.dev(), found.ino());
        ResolvedDir { path, device, inode, uid: found.uid(), gid: found.gid() }
    }

    fn policy(&self, is_writable: bool) -> Policy {
        let allowed = vec![self.path.clone()];
        let files = WorkingDirPolicy { allowed, is_writable, ..WorkingDirPolicy::default() };
        Policy { files, ..policy(LIMITS) }
    }

    async fn session(&self, workers: &Workers, language: Language) -> Session {
        let opening =
            AdmissionRequest { working_dir: Some(self.resolve()), ..request(language, "") };
        Session::with(workers, &self.policy(true), opening).await
    }

    /// As the server does it after a cell whose changes it has taken over.
    async fn renew(&self, session: &mut Session, generation: u32) {
        let ResolvedDir { path, device, inode, uid, gid } = self.resolve();
        let owner = codexec_sandbox::is_root().then_some((uid, gid));
        let mounter = Mounter::start(&codexec(), "mounter").expect("a mounter");
        let lower = mounter.mount(&MountRequest { path, device, inode, owner }).expect("a mount");
        session.run.renew_overlay(generation, lower).await.expect("renewed");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap_or_else(|error| error.kind().to_string())
    }

    /// Code that prints where it is and what is in `note`, by each of its paths.
    fn look(&self, language: Language) -> String {
        let path = self.path.display();
        match language {
            Language::Python => format!(
                "import os\nprint(os.getcwd(), *(open(p).read() for p in \
                 ('../note', '/box/work/note', '{path}/note')))"
            ),
            Language::Node => format!(
                "const fs = await import('node:fs'); console.log(process.cwd(), ...['../note', \
                 '/box/work/note', '{path}/note'].map((p) => fs.readFileSync(p, 'utf8'))); 0"
            ),
            _ => format!("echo \"$(pwd -P) $(<../note) $(</box/work/note) $(<{path}/note)\""),
        }
    }
}

#[test]
fn a_session_sees_edits_from_outside_once_its_overlay_is_renewed() {
    with_workers(async |workers| {
        for language in PROGRAMS {
            let project = Project::new();
            let path = project.path.display();
            let look = project.look(language);
            let mut session = project.session(workers, language).await;
            let enter = match language {
                Language::Python => format!(
                    "import os; os.chdir('{path}/sub'); open('../note', 'w').write('guest') and None"
                ),
                Language::Node => format!(
                    "process.chdir('{path}/sub'); \
                     (await import('node:fs')).writeFileSync('../note', 'guest'); 0"
                ),
                _ => format!("cd {path}/sub; printf guest >../note"),
            };
            session.prints(&enter, "").await;
            session.prints(&look, &format!("{path}/sub guest guest guest\n")).await;
            assert_eq!(project.text("note"), "old", "a guest's write reached the host by itself");
            for (generation, text) in [(1, "first"), (2, "second")] {
                fs::write(project.path.join("note"), text).expect("written");
                project.renew(&mut session, generation).await;
                let seen = format!("{path}/sub {text} {text} {text}\n");
                session.prints(&look, &seen).await;
            }
            // A directory that is not there any more is left, and the code that met that is not run.
            fs::remove_dir(project.path.join("sub")).expect("removed");
            project.renew(&mut session, 3).await;
            let reply = session.send(&enter).await;
            let Outcome::Threw(thrown) = &reply.outcome else { panic!("{reply:?}") };
            let gone = format!("the session's current directory {path}/sub is gone");
            assert!(thrown.message.starts_with(&gone), "{}", thrown.message);
            let whereabouts = match language {
                Language::Python => "print(os.getcwd())",
                Language::Node => "console.log(process.cwd()); 0",
                _ => "pwd -P",
            };
            session.prints(whereabouts, "/box/work\n").await;
        }
    });
}

/// THREAT[FIL-13]: a process that starts at this moment cannot find out where it is.
#[test]
fn fil_13_a_session_whose_layer_is_renewed_while_it_starts_is_in_the_new_one() {
    with_workers(async |workers| {
        for (round, language) in PROGRAMS.into_iter().cycle().take(12).enumerate() {
            let project = Project::new();
            let mut session = project.session(workers, language).await;
            let keep = |name: &str| session.keep.path().join(format!("{name}{round}"));
            let [between, after] = ["b", "a"].map(keep);
            session.run.refresh_directory(between).await;
            let (code, seen) = match language {
                Language::Python => ("import os; open('new', 'w').close(); print(os.getcwd())", ""),
                Language::Node => (
                    "(await import('node:fs')).writeFileSync('new', ''); \
                     console.log(process.cwd()); 0",
                    "",
                ),
                _ => (": > new; pwd -P; echo \"${OLDPWD-none}\"", "none\n"),
            };
            session.prints(code, &format!("/box/work\n{seen}")).await;
            let changes = session.run.collect_changes(after).await;
            assert_eq!(changes.created.len(), 1, "{language}: {changes:?}");
        }
    });
}

/// THREAT[FIL-7]: from when the guest can see a fresh layer, what others change is theirs.
#[test]
fn fil_7_an_edit_at_the_beginning_of_a_cell_is_not_overwritten() {
    with_workers(async |workers| {
        let project = Project::new();
        let mut session = project.session(workers, Language::Bash).await;
        let pid = session.run.pid().expect("a process");
        for round in 0..10 {
            let text = format!("theirs {round}");
            let (note, theirs) = (project.path.join("note"), text.clone());
            let mounts =
                move || fs::read_to_string(format!("/proc/{pid}/mountinfo")).expect("read");
            let before = mounts();
            let editing = std::thread::spawn(move || {
                while mounts() == before {}
                fs::write(note, theirs).expect("written");
            });
            session.run.refresh_directory(session.keep.path().join(format!("b{round}"))).await;
            editing.join().expect("edited");
            session.prints("printf guest > note", "").await;
            let changes =
                session.run.collect_changes(session.keep.path().join(format!("c{round}"))).await;
            let conflicts: Vec<_> =
                changes.conflicts.iter().map(|entry| entry.path.as_str()).collect();
            assert_eq!((project.text("note"), conflicts), (text, vec!["note"]), "{changes:?}");
        }
    });
}

/// THREAT[FIL-7]: a session sees its directory from the moment it is opened, and so its first cell
/// may know the old version.
#[test]
fn fil_7_an_edit_before_the_first_cell_is_not_overwritten() {
    with_workers(async |workers| {
        for language in PROGRAMS {
            let project = Project::new();
            let mut session = project.session(workers, language).await;
            fs::write(project.path.join("note"), "theirs").expect("written");
            let code = match language {
                Language::Python => "open('note', 'w').write('guest') and None",
                Language::Node => "(await import('node:fs')).writeFileSync('note', 'guest'); 0",
                _ => "printf guest > note",
            };
            session.prints(code, "").await;
            let changes = session.run.collect_changes(session.keep.path().join("c")).await;
            let conflicts: Vec<_> =
                changes.conflicts.iter().map(|entry| entry.path.as_str()).collect();
            let theirs = (project.text("note"), conflicts);
            assert_eq!(theirs, ("theirs".to_owned(), vec!["note"]), "{language}: {changes:?}");
        }
    });
}

/// THREAT[FIL-9]
#[test]
fn fil_9_the_layers_are_out_of_a_guests_reach() {
    with_workers(async |workers| {
        let project = Project::new();
        let mut session = project.session(workers, Language::Python).await;
        for generation in [0, 1] {
            if generation > 0 {
                project.renew(&mut session, generation).await;
            }
            // No mount but the overlays is of the layers or of the directory itself.
            let code = format!(
                "import os\n\
                 mounts = [line.split() for line in open('/proc/self/mountinfo')]\n\
                 kinds = sorted(line[line.index('-') + 1] for line in mounts \
                     if line[4].startswith(('/box/work', '{path}')))\n\
                 print(kinds, any('{path}' in line[3] for line in mounts), \
                     any('layers' in line[-2] or 'stage' in line[-2] for line in mounts), \
                     [p for p in ('/proc/layers', '/proc/lower', '/proc/merged') if os.path.exists(p)])",
                path = project.path.display(),
            );
            session.prints(&code, "['overlay', 'overlay'] False False []\n").await;
        }
        // The folders that lead to the real path are not the guest's to write.
        let parent = project.path.parent().expect("a parent");
        let code = format!(
            "def attempt(act):\n    \
                 try: act(); return 'done'\n    \
                 except OSError as error: return error.strerror\n\
             print(attempt(lambda: os.mkdir('{parent}/new')), \
                 attempt(lambda: os.rename('{parent}', '{parent}2')), \
                 attempt(lambda: os.rename('{path}', '{path}2')))",
            parent = parent.display(),
            path = project.path.display(),
        );
        let said = session.send(&code).await.out;
        assert!(!said.contains("done"), "{said}");
    });
}

/// THREAT[FIL-3]: a pipe of the directory is another one in the overlay.
#[test]
fn fil_3_a_pipe_of_the_users_leads_nowhere() {
    with_workers(async |workers| {
        let project = Project::new();
        let pipe = project.path.join("pipe");
        let mut reader = None;
        for is_renewed in [false, true] {
            if !is_renewed {
                let mut made = std::process::Command::new("mkfifo");
                assert!(made.arg(&pipe).status().expect("run").success());
                let flags = 0o4000; // O_NONBLOCK: nobody writes yet.
                let opened = fs::File::options().read(true).custom_flags(flags).open(&pipe);
                reader = Some(opened.expect("opened"));
            }
            let mut session = project.session(workers, Language::Python).await;
            if is_renewed {
                project.renew(&mut session, 1).await;
            }
            let code = "import os\ntry: print(os.open('pipe', os.O_WRONLY | os.O_NONBLOCK))\n\
                        except OSError as error: print(error.strerror)";
            session.prints(code, "No such device or address\n").await;
        }
        drop(reader);
    });
}

#[test]
fn a_folder_of_the_users_can_be_renamed() {
    let python = "
import os, pathlib, shutil
os.rename('a', 'a2'); os.replace('b', 'b2'); pathlib.Path('c').rename('c2'); shutil.move('d', 'd2')
try: os.rename('e', 'full')
except OSError as error: print(error.strerror)
print(sorted(os.listdir('.')), os.readlink('a2/link'), oct(os.stat('a2/run').st_mode & 0o777), \
int(os.stat('a2/run').st_mtime), open('a2/run').read())";
    let node = "
import fs from 'node:fs';
import { renameSync } from 'node:fs';
renameSync('a', 'a2'); fs.renameSync('b', 'b2'); await fs.promises.rename('c', 'c2');
await new Promise((done, failed) => fs.rename('d', 'd2', (error) => error ? failed(error) : done()));
try { fs.renameSync('e', 'full') } catch (error) { console.log(error.code === 'ENOTEMPTY' && 'Directory not empty') }
const { mode, mtimeMs } = fs.statSync('a2/run');
const names = fs.readdirSync('.').sort().map((name) => `'${name}'`).join(', ');
console.log(`[${names}]`, fs.readlinkSync('a2/link'), '0o' + (mode & 0o777).toString(8), \
mtimeMs / 1000, fs.readFileSync('a2/run', 'utf8'));
0";
    let bash = "
mv a a2; mv b b2; mv c c2; mv d d2; mv -T e full 2>/dev/null || echo Directory not empty
echo \"[$(ls -m | tr -d '\\n' | sed \"s/[^, ]*/'&'/g; s/''//g\")]\" \"$(readlink a2/link)\" 0o$(stat -c %a a2/run) $(stat -c %Y a2/run) $(<a2/run)";
    with_workers(async |workers| {
        for (language, code) in
            [(Language::Python, python), (Language::Node, node), (Language::Bash, bash)]
        {
            let project = Project::new();
            for name in ["a", "b", "c", "d", "e", "full"] {
                fs::create_dir(project.path.join(name)).expect("made");
                fs::write(project.path.join(name).join("run"), name).expect("written");
            }
            let run = fs::File::options().write(true).open(project.path.join("a/run"));
            let run = run.expect("opened");
            run.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o751)).expect("set");
            let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
            run.set_modified(then).expect("set");
            std::os::unix::fs::symlink("run", project.path.join("a/link")).expect("linked");
            let mut session = project.session(workers, language).await;
            let names = "['a2', 'b2', 'c2', 'd2', 'e', 'full', 'note', 'sub']";
            let seen = format!("Directory not empty\n{names} run 0o751 1000000000 a\n");
            session.prints(code, &seen).await;
        }
    });
}
