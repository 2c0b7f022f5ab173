//! Directories of the user's that code works in, and what it leaves there.

mod sessions;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Client, ToolText};

/// A project of the user's, and a server that may work in it.
pub(crate) struct Project {
    pub(crate) client: Client,
    at: TempDir,
}

impl Project {
    pub(crate) fn new(settings: &str) -> Project {
        Project::at(tempfile::tempdir().expect("a directory"), settings)
    }

    fn at(at: TempDir, settings: &str) -> Project {
        let real = fs::canonicalize(at.path()).expect("a path");
        let settings = format!("[files]\nallowed = [{:?}]\n{settings}", real.display().to_string());
        let file = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
        fs::write(file.path(), settings).expect("written");
        let client = Client::with(&json!({}), |command| {
            command.arg("--config").arg(file.path());
        });
        Project { client, at }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.at.path()).expect("a path").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    pub(crate) fn bash(&mut self, code: &str) -> ToolText {
        let dir = self.path("");
        self.bash_in(&dir, code)
    }

    pub(crate) fn bash_in(&mut self, dir: &Path, code: &str) -> ToolText {
        let arguments = json!({"language": "bash", "code": code, "working_dir": dir});
        self.client.call("execute_code", &arguments)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| error.kind().to_string())
    }
}

#[test]
fn a_directory_may_begin_with_the_home_and_has_its_own_path_in_every_language() {
    let home = tempfile::tempdir().expect("a directory");
    let home_path = fs::canonicalize(home.path()).expect("a path");
    let project = home_path.join("project");
    fs::create_dir(&project).expect("made");
    fs::write(project.join("data"), "x").expect("written");
    let config = home_path.join("config.toml");
    fs::write(&config, "[files]\nallowed = ['~/project']\n").expect("written");
    let mut client = Client::with(&json!({}), |command| {
        command.env("HOME", &home_path).arg("--config").arg(&config);
    });
    let mut run = |language: &str, dir: &str, code: &str| {
        let call = json!({"language": language, "code": code, "working_dir": dir});
        client.call("execute_code", &call)
    };
    let data = project.join("data").display().to_string();
    for (language, code) in [
        ("python", format!("open('{data}').read() + open('data').read()")),
        ("bash", format!("cat '{data}' data")),
        (
            "node",
            format!(
                "require('fs').readFileSync('{data}', 'utf8') + require('fs').readFileSync('data')"
            ),
        ),
    ] {
        assert_eq!(run(language, "~/project", &code).fine(), "xx", "{language}");
    }
    let said = run("python", "~/project/", "open('other.csv')").failed();
    let hint = format!("; of the user's files, code sees only what is below {}", project.display());
    assert!(said.lines().next().is_some_and(|line| line.ends_with(&hint)), "{said}");
    let expected = format!(
        "WORKING_DIR_NOT_ALLOWED: working_dir: {}/other is not allowed; allowed: {} and below; the \
         user can add it to `allowed` under [files] in config.toml",
        home_path.display(),
        project.display()
    );
    assert_eq!(run("bash", "~/other", "1").failed(), expected);
}

#[test]
fn what_changed_is_told_with_sizes() {
    let mut project = Project::new("");
    project.write("deep/kept", "same");
    project.write("changed", "old");
    project.write("gone", "12345");
    let said = project
        .bash("cat deep/kept; echo longer > changed; rm gone; mkdir new; echo hi > new/file");
    let expected =
        "same\n[artifacts]\ncreated new/file (3 bytes)\nmodified changed (7 bytes)\ndeleted gone";
    assert_eq!(said.fine(), expected);
    assert_eq!(
        (project.text("changed").as_str(), project.text("new/file").as_str()),
        ("longer\n", "hi\n")
    );
}

#[test]
fn files_are_their_owners_as_before() {
    use std::os::unix::fs::MetadataExt as _;
    let mut project = Project::new("");
    project.write("private", "mine");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(project.path("private"), mode).expect("set");
    assert!(project.bash("cat private; echo made > new").fine().starts_with("mine\n"));
    let owner = |name: &str| fs::metadata(project.path(name)).expect("there").uid();
    assert_eq!(owner("new"), owner("private"));
}

/// Only root can give a file to a group without being in it.
#[test]
fn a_file_of_another_group_can_be_read_but_not_changed() {
    use std::os::unix::fs::MetadataExt as _;
    let mut project = Project::new("");
    for name in ["plain", "shared"] {
        project.write(name, "old\n");
    }
    if std::os::unix::fs::chown(project.path("shared"), None, Some(54_321)).is_err() {
        assert!(!crate::attacks::host::is_root(), "root can");
        return;
    }
    project.bash("cat shared; echo new >> plain; echo new >> shared").failed();
    assert_eq!(
        (project.text("plain"), project.text("shared")),
        ("old\nnew\n".into(), "old\n".into())
    );
    assert_eq!(fs::metadata(project.path("shared")).expect("there").gid(), 54_321);
}

#[test]
fn what_the_policy_calls_read_only_is() {
    let mut project = Project::new("writable = false\n");
    project.write("file", "old");
    let code = "(echo new > file || echo x > other) 2>/dev/null; cat file; touch /tmp/fine && echo; echo fine";
    assert_eq!(project.bash(code).fine(), "old\nfine");
    assert_eq!(project.text("file"), "old");
}

/// THREAT[FIL-1]
#[test]
fn fil_1_links_do_not_lead_out() {
    let mut project = Project::new("");
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("secret"), "canary").expect("written");
    symlink(outside.path(), project.path("out")).expect("linked");
    symlink("/etc", project.path("etc")).expect("linked");
    // From inside, a link leads to what the guest itself sees under that name: nothing.
    let said = project.bash("cat out/secret etc/shadow 2>/dev/null || echo nothing").fine();
    assert_eq!(said, "nothing");
    // As the directory to work in, it is judged by where it leads.
    for name in ["out", "etc"] {
        let dir = project.path(name);
        let text = project.bash_in(&dir, "ls").failed();
        assert!(text.starts_with("WORKING_DIR_NOT_ALLOWED: working_dir: "), "{text}");
    }
    // And so is what the guest makes: a link that leads out is not left there.
    let said = project.bash("ln -s /etc/passwd left; ln -s file inside").fine();
    let expected = "[artifacts]\ncreated inside (4 bytes)\n\
                    held back left: the link leads out of the directory";
    assert_eq!(said, expected);
    assert!(fs::symlink_metadata(project.path("left")).is_err());
}

/// THREAT[FIL-2]
#[test]
fn fil_2_what_runs_by_itself_cannot_be_planted() {
    let mut project = Project::new("");
    project.write(".git/config", "[core]\n");
    project.write(".git/hooks/pre-commit.sample", "");
    project.write("sub/.vscode/tasks.json", "{}");
    let planted = [
        ".bashrc",
        ".mcp.json",
        ".git/hooks/pre-commit",
        ".git/config",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".envrc",
        "AGENTS.md",
        "sub/.vscode/tasks.json",
        "sub/.mcp.json",
        "new/.git/hooks/post-checkout",
        ".GIT/config",
    ];
    let code = planted
        .map(|name| format!("mkdir -p $(dirname {name}) 2>/dev/null; echo evil > {name};"))
        .join("\n");
    let said = project.bash(&format!("{code}\ncat .git/config")).fine();
    assert!(said.starts_with("evil\n"), "the code sees what it wrote: {said}");
    for name in planted {
        assert!(!project.text(name).contains("evil"), "{name} was planted: {said}");
    }
    assert_eq!(project.text(".git/config"), "[core]\n");
    let held = said.lines().filter(|line| line.starts_with("held back ")).count();
    assert!(held >= 5, "{said}");
}

#[test]
fn files_of_a_workspace_can_be_fetched() {
    let mut project = Project::new("");
    let code = "printf 'a,b\\n' > table.csv; mkdir d; printf '\\x89PNG' > d/p.png; truncate -s 8G sparse 2>/dev/null";
    let reply = project.client.request(
        "tools/call",
        &json!({"name": "execute_code", "arguments": {"language": "bash", "code": code}}),
    );
    let id =
        reply["result"]["_meta"]["codexec/execution"]["id"].as_str().expect("an id").to_owned();
    let mut read = |path: &str| -> Value {
        let uri = format!("codexec://executions/{id}/artifacts{path}");
        project.client.request("resources/read", &json!({"uri": uri}))["result"]["contents"][0]
            .clone()
    };
    assert_eq!(read("/table.csv")["text"], "a,b\n");
    assert_eq!(read("/d/p.png")["blob"], "iVBORw==");
    let listed = read("")["text"].as_str().expect("a list").to_owned();
    assert!(listed.contains("table.csv") && listed.contains("d/p.png"), "{listed}");
}

#[test]
fn bash_shows_a_picture() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let mut project = Project::new("");
    let code = format!(
        "echo {png} | base64 -d > dot.png; mcp show dot.png; echo text > no.png; mcp show no.png"
    );
    let arguments = json!({"language": "bash", "code": code});
    let reply = project
        .client
        .request("tools/call", &json!({"name": "execute_code", "arguments": arguments}));
    let content = &reply["result"]["content"];
    assert_eq!(
        content[1],
        json!({"type": "image", "data": png, "mimeType": "image/png"}),
        "{reply}"
    );
    let text = content[0]["text"].as_str().expect("a text");
    let complaint = "mcp: no.png: not an image; use PNG, JPEG, GIF or WebP; see mcp --help";
    assert!(
        text.starts_with("NONZERO_EXIT: the program ended with exit code 2")
            && text.contains(complaint),
        "{text}"
    );
}

/// THREAT[FIL-3]
#[test]
fn fil_3_a_socket_of_the_users_leads_nowhere() {
    for settings in ["", "writable = false\n"] {
        let mut project = Project::new(settings);
        let listener = std::os::unix::net::UnixListener::bind(project.path("sock")).expect("bound");
        listener.set_nonblocking(true).expect("set");
        let code = "import socket\ntry:\n    socket.socket(socket.AF_UNIX).connect('sock')\n    \
                    print('connected')\nexcept OSError as error:\n    print(type(error).__name__)";
        let arguments =
            json!({"language": "python", "code": code, "working_dir": project.path("")});
        let said = project.client.call("execute_code", &arguments).fine();
        assert_eq!(said.lines().next(), Some("ConnectionRefusedError"), "{said}");
        assert!(listener.accept().is_err(), "somebody came");
    }
}

/// THREAT[FIL-4]
#[test]
fn fil_4_no_file_runs_with_its_owners_rights() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut project = Project::new("");
    let code = "import os\n\
        open('a', 'w').close()\n\
        os.umask(0)\n\
        def attempt(make):\n    \
            try: make(); return 'made'\n    \
            except PermissionError: return 'refused'\n\
        print([attempt(make) for make in (\n    \
            lambda: os.chmod('a', 0o4755), lambda: os.chmod('a', 0o2755),\n    \
            lambda: os.fchmod(os.open('a', os.O_RDWR), 0o4755),\n    \
            lambda: os.close(os.open('b', os.O_CREAT | os.O_WRONLY, 0o4755)),\n    \
            lambda: os.mknod('c', 0o104755), lambda: os.chmod('a', 0o755))])";
    let arguments = json!({"language": "python", "code": code, "working_dir": project.path("")});
    let said = project.client.call("execute_code", &arguments).fine();
    let expected = "['refused', 'refused', 'refused', 'refused', 'refused', 'made']";
    assert_eq!(said.lines().next(), Some(expected), "{said}");
    for name in ["a", "b", "c"] {
        let mode = fs::metadata(project.path(name)).map_or(0, |found| found.permissions().mode());
        assert_eq!(mode & 0o6000, 0, "{name}");
    }
    let shell = "cp /bin/true t && chmod u+s t 2>/dev/null; install -m 4755 /bin/true u 2>/dev/null; \
                 find . -perm /6000 | wc -l";
    assert!(project.bash(shell).fine().starts_with('0'));
}

/// THREAT[FIL-7]
#[test]
fn fil_7_a_repository_that_the_user_makes_beside_a_session_stays() {
    let mut project = Project::new("");
    let dir = project.path("");
    let mut send = |code: &str| {
        let arguments =
            json!({"language": "bash", "code": code, "working_dir": dir, "session": "s"});
        project.client.call("execute_code", &arguments).fine()
    };
    assert_eq!(send("echo 1 > mine"), "[artifacts]\ncreated mine (2 bytes)");
    for (path, text) in [(".git/HEAD", "ref"), ("CLAUDE.md", "mine"), ("mine", "theirs")] {
        fs::create_dir_all(dir.join(path).parent().expect("a parent")).expect("made");
        fs::write(dir.join(path), text).expect("written");
    }
    // What somebody else changed is seen by the next cell, also where the session had written.
    assert_eq!(send("cat mine; echo; cat .git/HEAD CLAUDE.md"), "theirs\nrefmine");
    assert_eq!(send("echo 2 > mine"), "[artifacts]\nmodified mine (2 bytes)");
    for (path, text) in [(".git/HEAD", "ref"), ("CLAUDE.md", "mine"), ("mine", "2\n")] {
        assert_eq!(fs::read_to_string(dir.join(path)).expect(path), text);
    }
}

/// THREAT[FIL-5]
#[test]
fn fil_5_a_folder_that_another_run_replaced_by_a_link_is_not_followed() {
    let mut project = Project::new("");
    let victim = tempfile::tempdir().expect("a directory");
    fs::write(victim.path().join(".bashrc"), "mine").expect("written");
    fs::create_dir(victim.path().join(".git")).expect("made");
    project.write("sub/file", "old");
    let (dir, sub) = (project.path(""), project.path("sub"));
    let arguments = json!({"language": "bash", "working_dir": sub, "session": "s",
                           "code": "echo planted > .bashrc; echo 1 > seen"});
    project.client.call("execute_code", &arguments).fine();
    // The user follows an agent's advice, or another program does it.
    fs::rename(&sub, project.path("sub2")).expect("renamed");
    symlink(victim.path(), dir.join("sub")).expect("linked");
    let arguments = json!({"language": "bash", "working_dir": sub, "session": "s",
                           "code": "rm -rf .git .bashrc seen; echo 2 > new"});
    project.client.call("execute_code", &arguments);
    let left: Vec<_> = fs::read_dir(victim.path()).expect("there").flatten().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(fs::read_to_string(victim.path().join(".bashrc")).expect("there"), "mine");
}

/// THREAT[FIL-6]
#[test]
fn fil_6_what_is_exchanged_while_it_is_collected_is_not_followed() {
    let mut project = Project::new("");
    // The names are those of files in /etc, and change every time, so that they are copied.
    let swap = "import os, threading, time\n\
        os.makedirs('d', exist_ok=True)\n\
        def swap():\n    \
            while True:\n        \
                for name in ('passwd', 'group'): open('d/' + name, 'a').write('x')\n        \
                time.sleep(0.0003)\n        \
                os.rename('d', 'e'); os.symlink('/etc', 'd'); time.sleep(0.0003)\n        \
                os.unlink('d'); os.mkfifo('d'); os.unlink('d'); os.rename('e', 'd')\n        \
                os.unlink('d/group'); os.mkfifo('d/group'); time.sleep(0.0003)\n        \
                os.unlink('d/group')\n\
        threading.Thread(target=swap, daemon=True).start()";
    let mut session = |code: &str| {
        let arguments = json!({"language": "python", "code": code, "session": "s"});
        project.client.call("execute_code", &arguments)
    };
    session(swap).fine();
    for _ in 0..20 {
        session("open('n', 'a').write('x')").fine();
    }
    let mut kept = vec![project.client.home.path().join("state/artifacts")];
    while let Some(folder) = kept.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                kept.push(entry.path());
            } else {
                let text = fs::read_to_string(entry.path()).expect("text");
                assert!(!text.contains("root:"), "{:?}", entry.path());
            }
        }
    }
}

/// THREAT[FIL-8]
#[test]
fn fil_8_what_code_writes_is_bounded_in_bytes_and_in_files() {
    let mut project = Project::new("max-mib = 2\nmax-files = 64\n");
    project.write("old", "kept");
    let code = "head -c 5000000 /dev/zero > big 2>/dev/null || echo full; rm big; \
                for n in $(seq 100); do : > f$n || break; done 2>/dev/null; ls f* | wc -l";
    let said = project.bash(code).fine();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "full", "{said}");
    let count: usize = lines[1].parse().expect("a number");
    assert!(count > 10 && count < 64, "{said}");
    assert_eq!(project.text("old"), "kept");
}

/// THREAT[FIL-2]
#[test]
fn fil_2_cleaning_up_cannot_be_outrun_or_hidden_from() {
    let mut project = Project::new("");
    let code = "mkdir .vscode; echo evil > .vscode/tasks.json; chmod 555 .vscode; \
                mkdir many; for n in $(seq 3000); do : > many/$n; done; echo evil > many/.mcp.json; \
                for n in $(seq 300); do mkdir d && cd d; done; echo evil > .envrc";
    let said = project.bash(code).fine();
    for path in [".vscode/tasks.json", "many/.mcp.json"] {
        assert!(!project.path(path).exists(), "{said}");
    }
    assert!(project.path("many/3000").exists(), "{said}");
    // Between two cells nobody waits for a background process, and it reaches nothing.
    let arguments = |code: &str| json!({"language": "bash", "code": code, "session": "s", "working_dir": project.path("")});
    let (start, next) = (
        arguments("(while :; do echo evil > .mcp.json; done) & echo started"),
        arguments("echo next"),
    );
    assert!(project.client.call("execute_code", &start).fine().starts_with("started"));
    assert!(project.client.call("execute_code", &next).fine().contains("next"));
    assert!(!project.path(".mcp.json").exists());
}

#[test]
fn a_session_writes_what_was_left_running_at_the_next_reply() {
    let mut project = Project::new("");
    let dir = project.path("");
    let send = |project: &mut Project, code: &str| {
        let arguments =
            json!({"language": "bash", "working_dir": dir, "session": "s", "code": code});
        project.client.call("execute_code", &arguments).fine()
    };
    let late = "(while [ ! -e /tmp/go ]; do sleep 0.01; done; echo late > late; : > /tmp/done) &";
    send(&mut project, late);
    send(&mut project, ": > /tmp/go; while [ ! -e /tmp/done ]; do sleep 0.01; done");
    assert_eq!(project.text("late"), "late\n");
}

#[test]
fn a_session_sees_what_somebody_adds_where_it_has_looked_before() {
    for settings in ["", "writable = false\n"] {
        let mut project = Project::new(settings);
        let dir = project.path("");
        for language in ["bash", "python", "node"] {
            let code = match language {
                "bash" => "cat added 2>/dev/null || echo no",
                "python" => {
                    "import os; print(open('added').read() if os.path.exists('added') else 'no')"
                }
                _ => {
                    "const fs = require('fs'); console.log(fs.existsSync('added') ? fs.readFileSync('added', 'utf8') : 'no')"
                }
            };
            let arguments = json!({"language": language, "working_dir": dir, "session": language, "code": code});
            let mut send = || project.client.call("execute_code", &arguments).fine();
            assert!(send().starts_with("no"), "{language}");
            fs::write(dir.join("added"), "yes").expect("written");
            assert!(send().starts_with("yes"), "{language}");
            fs::remove_file(dir.join("added")).expect("removed");
        }
    }
}

#[test]
fn code_finds_its_directory_at_its_real_path() {
    let mut project = Project::new("");
    project.write("file", "here");
    let path = project.path("file");
    let code = format!("cat {0}; echo more >> {0}; cat file", path.display());
    assert!(project.bash(&code).fine().starts_with("herehere"));
    assert_eq!(project.text("file"), "heremore\n");
}

#[test]
fn names_that_are_let_through_are_written() {
    let mut project = Project::new("let-through = [\".venv\"]\n");
    let said = project.bash("mkdir .venv; echo 1 > .venv/x.pth; echo 1 > y.pth").fine();
    assert!(said.contains("created .venv/x.pth") && said.contains("held back y.pth"), "{said}");
    assert_eq!(project.text(".venv/x.pth"), "1\n");
    assert!(!project.path("y.pth").exists());
}

/// THREAT[FIL-10]
#[test]
fn fil_10_many_runs_at_once_are_each_in_their_own_directory() {
    let mut project = Project::new("");
    let names: Vec<String> = (0..8).map(|n| format!("d{n}")).collect();
    for name in &names {
        project.write(&format!("{name}/name"), name);
    }
    for _ in 0..5 {
        let mut sent = Vec::new();
        for name in &names {
            let dir = project.path(name);
            let arguments = json!({"language": "bash", "code": "cat name", "working_dir": dir});
            sent.push((name, project.client.send_call("execute_code", &arguments)));
        }
        for (name, id) in sent {
            assert_eq!(project.client.wait_call(id).fine(), *name);
        }
    }
}
