//! Interpreters that do not work and directories that may not be worked in: one clear answer that
//! names the setting or the field and says what to do.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Client, ToolText, command, keep_settings};

/// A client that was started in a directory of its user's, with these settings.
struct ProjectClient {
    client: Client,
    home: PathBuf,
    project: PathBuf,
}

impl ProjectClient {
    /// `settings` is told where home is.
    fn new(settings: impl FnOnce(&Path) -> String) -> ProjectClient {
        let (mut home, mut project) = (PathBuf::new(), PathBuf::new());
        let client = Client::with(&json!({}), |command| {
            home = command.get_current_dir().expect("set").to_owned();
            keep_settings(&home, &settings(&home));
            project = home.join("project");
            std::fs::create_dir(&project).expect("made");
            command.current_dir(&project);
        });
        ProjectClient { client, home, project }
    }

    fn run(&mut self, arguments: &Value) -> ToolText {
        let said = self.client.call("execute_code", arguments);
        self.client.ping();
        said
    }
}

/// A program that prints this, whatever it is asked.
fn says(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\n")).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("runnable");
}

/// Code of this language is refused with this text, in which HOME stands for home, twice; other
/// languages still run.
#[track_caller]
fn check(language: &str, settings: impl FnOnce(&Path) -> String, expected: &str) {
    let mut desk = ProjectClient::new(settings);
    let expected = expected.replace("HOME", &desk.home.display().to_string());
    let refused = ToolText { text: format!("INTERPRETER_UNAVAILABLE: {expected}"), is_error: true };
    let arguments = json!({"language": language, "code": "1"});
    assert_eq!(desk.run(&arguments), refused);
    assert_eq!(desk.run(&arguments), refused);
    assert_eq!(desk.run(&json!({"code": "6 * 7"})).fine(), "42");
    assert_eq!(desk.run(&json!({"language": "bash", "code": "echo 42"})).fine(), "42");
}

const NAME_ANOTHER: &str = "name a working interpreter or virtual environment with \
                            `python.interpreter` or `python.venv` in config.toml";

#[test]
fn a_python_that_is_not_there_is_told() {
    check(
        "python",
        |_| "[python]\ninterpreter = \"/nowhere/python3\"\n".to_owned(),
        "`python.interpreter` in config.toml names /nowhere/python3, which is not there; name \
         another, or leave it out for the python3 on PATH",
    );
}

#[test]
fn a_virtual_environment_whose_python_is_gone_is_told() {
    check(
        "python",
        |home| {
            std::fs::create_dir_all(home.join("venv/bin")).expect("made");
            symlink("/nowhere/python3", home.join("venv/bin/python")).expect("linked");
            "[python]\nvenv = \"~/venv\"\n".to_owned()
        },
        "`python.venv` in config.toml names HOME/venv, which has no bin/python; make it anew with \
         `python3 -m venv HOME/venv`, or name another",
    );
}

#[test]
fn a_python_that_says_something_else_is_told() {
    check(
        "python",
        |home| {
            says(&home.join("python3"), "garbage");
            "[python]\ninterpreter = \"~/python3\"\n".to_owned()
        },
        &format!("HOME/python3 does not work: it said \"garbage\"; {NAME_ANOTHER}"),
    );
}

#[test]
fn a_python_that_may_not_be_run_is_told() {
    check(
        "python",
        |home| {
            std::fs::write(home.join("python3"), "").expect("written");
            "[python]\ninterpreter = \"~/python3\"\n".to_owned()
        },
        &format!("HOME/python3 does not work: Permission denied (os error 13); {NAME_ANOTHER}"),
    );
}

#[test]
fn a_python_that_is_too_old_is_told() {
    let about = json!({
        "executable": "/usr/bin/python3.8", "version": [3, 8, 18], "prefixes": ["/usr"],
        "path": [], "user_site": null,
    });
    check(
        "python",
        |home| {
            says(&home.join("python3"), &about.to_string());
            "[python]\ninterpreter = \"~/python3\"\n".to_owned()
        },
        "HOME/python3 is Python 3.8.18; 3.9 or newer is needed: name another with \
         `python.interpreter` in config.toml",
    );
}

#[test]
fn a_node_that_is_not_there_is_told() {
    check(
        "node",
        |_| "[node]\ninterpreter = \"/nowhere/node\"\n".to_owned(),
        "/nowhere/node cannot be started (No such file or directory (os error 2)); name a working \
         one with `node.interpreter` in config.toml",
    );
}

#[test]
fn a_node_that_is_too_old_is_told() {
    check(
        "node",
        |home| {
            says(&home.join("node"), "v16.20.2");
            "[node]\ninterpreter = \"~/node\"\n".to_owned()
        },
        "HOME/node is Node.js v16.20.2; 18 or newer is needed",
    );
}

/// Through a link, as people keep several of them and switch.
#[test]
fn a_virtual_environment_may_be_a_link() {
    let mut desk = ProjectClient::new(|home| {
        let made = std::process::Command::new("/usr/bin/env")
            .args(["python3", "-m", "venv", "--without-pip"])
            .arg(home.join("real"))
            .output()
            .expect("python3 starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        symlink(home.join("real"), home.join("link")).expect("linked");
        "[python]\nvenv = \"~/link\"\n".to_owned()
    });
    let code = "import sys\nsys.prefix != sys.base_prefix";
    assert_eq!(desk.run(&json!({"language": "python", "code": code})).fine(), "true");
}

#[test]
fn a_language_that_is_not_enabled_is_told_with_those_that_are() {
    let mut desk =
        ProjectClient::new(|_| "[languages]\nenabled = [\"python\", \"bash\"]\n".to_owned());
    for language in ["typescript", "javascript", "node"] {
        let said = desk.run(&json!({"language": language, "code": "1"}));
        let text = format!("language: {language} is not enabled here; enabled: python, bash");
        assert_eq!(said, ToolText { text: format!("INVALID_LANGUAGE: {text}"), is_error: true });
    }
    assert_eq!(desk.run(&json!({"language": "bash", "code": "echo 42"})).fine(), "42");
}

#[test]
fn code_that_is_not_utf_8_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join("bad.py"), b"x = '\xff'").expect("written");
    let output = command(home.path()).args(["exec", "--file", "bad.py"]).output().expect("runs");
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end()),
        (Some(2), "error: --file: bad.py is not UTF-8; save it as UTF-8")
    );
}

#[test]
fn a_directory_that_may_not_be_worked_in_is_refused_by_name() {
    let mut desk = ProjectClient::new(|_| String::new());
    let (home, project) = (desk.home.clone(), desk.project.clone());
    std::fs::create_dir(home.join(".ssh")).expect("made");
    std::fs::create_dir(home.join("other")).expect("made");
    std::fs::write(project.join("file"), "").expect("written");
    for (link, target) in [("ssh", ".ssh"), ("there", "other"), ("gone", "nowhere")] {
        symlink(home.join(target), project.join(link)).expect("linked");
    }
    let (home, project) = (home.display(), project.display());
    let never = |path: &str, private: &str| {
        format!(
            "WORKING_DIR_NOT_ALLOWED: working_dir: {path} may never be used: {private} is private"
        )
    };
    let not_allowed = |path: &str| {
        format!(
            "WORKING_DIR_NOT_ALLOWED: working_dir: {path} is not allowed; allowed: {project} and below; the user can add it to `allowed` under [files] in config.toml"
        )
    };
    let cases = [
        (
            format!("{project}/nowhere"),
            format!(
                "WORKING_DIR_NOT_FOUND: working_dir: \"{project}/nowhere\" does not exist; name a \
             directory that does"
            ),
        ),
        (
            format!("{project}/gone"),
            format!(
                "WORKING_DIR_NOT_FOUND: working_dir: \"{project}/gone\" does not exist; name a \
             directory that does"
            ),
        ),
        (
            format!("{project}/file"),
            format!(
                "INVALID_ARGS: working_dir: \"{project}/file\" is not a directory; name the directory \
             it is in"
            ),
        ),
        (format!("{home}/.ssh"), never(&format!("{home}/.ssh"), &format!("{home}/.ssh"))),
        (format!("{project}/ssh"), never(&format!("{home}/.ssh"), &format!("{home}/.ssh"))),
        (format!("{home}/state"), never(&format!("{home}/state"), &format!("{home}/state"))),
        ("/etc".to_owned(), never("/etc", "/etc")),
        ("/etc/ssl".to_owned(), never("/etc/ssl", "/etc")),
        ("/".to_owned(), never("/", "/etc")),
        (format!("{home}/other"), not_allowed(&format!("{home}/other"))),
        (format!("{project}/there"), not_allowed(&format!("{home}/other"))),
    ];
    let mut wrong = Vec::new();
    for (path, expected) in cases {
        let said = desk.run(&json!({"language": "bash", "code": "pwd", "working_dir": path}));
        if said != (ToolText { text: expected, is_error: true }) {
            wrong.push(said.text);
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_working_dir_that_is_not_there_is_told_at_a_terminal() {
    let home = tempfile::tempdir().expect("a directory");
    let project = home.path().join("project");
    std::fs::create_dir(&project).expect("made");
    for (path, expected) in [
        ("../nowhere", "--working-dir: ../nowhere: No such file or directory".into()),
        (
            "nowhere",
            format!(
                "--working-dir: \"{}/nowhere\" does not exist; name a directory that does",
                project.display()
            ),
        ),
    ] {
        let mut command = command(home.path());
        command.args(["exec", "-l", "bash", "-w", path, "pwd"]).current_dir(&project);
        let output = command.output().expect("runs");
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end()),
            (Some(2), format!("error: {expected}").as_str())
        );
    }
}
