//! Directories of the user's that code works in, and what it leaves there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Client, Said};

/// A project of the user's, and a server that may work in it.
struct Project {
    client: Client,
    at: TempDir,
}

impl Project {
    fn new(settings: &str) -> Project {
        let at = tempfile::tempdir().expect("a directory");
        let real = fs::canonicalize(at.path()).expect("a path");
        let settings = format!("[files]\nallowed = [{:?}]\n{settings}", real.display().to_string());
        let path = at.path().with_extension("toml");
        fs::write(&path, settings).expect("written");
        let client = Client::with(&json!({}), |command| {
            command.arg("--config").arg(&path);
        });
        fs::remove_file(path).expect("read by now");
        Project { client, at }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.at.path()).expect("a path").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn bash(&mut self, code: &str) -> Said {
        let dir = self.path("");
        self.bash_in(&dir, code)
    }

    fn bash_in(&mut self, dir: &Path, code: &str) -> Said {
        let arguments = json!({"language": "bash", "code": code, "working_dir": dir});
        self.client.call("execute_code", &arguments)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| error.kind().to_string())
    }
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
    // And so is what the guest makes: a link it leaves is listed, never followed.
    let said = project.bash("ln -s /etc/passwd left").fine();
    assert_eq!(said, "[artifacts]\ncreated left (11 bytes)");
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
    let said = project.bash(&format!("{code}\nmv .git old 2>/dev/null || echo stays")).fine();
    assert!(said.contains("stays"), "{said}");
    for name in planted {
        assert!(!project.text(name).contains("evil"), "{name} was planted: {said}");
    }
    assert_eq!(project.text(".git/config"), "[core]\n");
    let refused = said.lines().filter(|line| line.starts_with("refused ")).count();
    assert!(refused >= 5, "{said}");
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
    let complaint = "mcp: no.png: it is no picture; PNG, JPEG, GIF and WebP are; see mcp --help";
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
