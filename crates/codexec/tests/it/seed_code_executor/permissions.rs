//! `permissions`: what can be given is given, and what cannot is refused with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::Seed;

const BELOW: &str = "ALLOWED_PROJECTS names the directories that code may be given";

/// A project of the user's with two directories, and a file beside it that is nobody's business.
struct Project {
    seed: Seed,
    at: PathBuf,
    _kept: TempDir,
}

impl Project {
    fn new() -> Project {
        let kept = tempfile::tempdir().expect("a directory");
        let at = fs::canonicalize(kept.path()).expect("a path").join("project");
        fs::create_dir_all(at.join("data")).expect("made");
        fs::create_dir_all(at.join("other")).expect("made");
        fs::write(at.join("data/in.txt"), "hello").expect("written");
        fs::create_dir(at.with_file_name("private")).expect("made");
        let seed = Seed::with(&json!({}), |command| {
            command.env("ALLOWED_PROJECTS", &at);
        });
        Project { seed, at, _kept: kept }
    }

    fn python(&self, code: &str, permissions: &Value) -> Value {
        json!({"code": code, "permissions": permissions})
    }

    #[track_caller]
    fn refused(&mut self, tool: &str, permissions: &Value, expected: &Value) {
        let said = self.seed.refused(tool, &json!({"code": "1", "permissions": permissions}));
        assert_eq!(said, *expected, "{permissions}");
    }
}

const WRITE: &str = "try:\n    print(open('out.txt', 'w').write('new'))\n\
                     except OSError as error:\n    print(error.strerror)";

#[test]
fn a_directory_to_read_can_be_read_and_one_to_write_also_written() {
    let mut project = Project::new();
    let data = project.at.join("data");
    let code = format!("print(open('in.txt').read())\n{WRITE}");
    let read = project.python(&code, &json!({"read": [data]}));
    assert_eq!(project.seed.done("executePython", &read), "hello\nRead-only file system\n");
    let write = project.python(&code, &json!({"write": [data], "read": [data], "net": []}));
    assert_eq!(project.seed.done("executePython", &write), "hello\n3\n");
    assert_eq!(fs::read_to_string(data.join("out.txt")).expect("text"), "new");
    // One that has the others in it is all of them.
    let whole = json!({"read": [data, project.at], "write": []});
    let whole = project.python("print(open('data/in.txt').read())", &whole);
    assert_eq!(project.seed.done("executePython", &whole), "hello\n");
    // And without any, there is nothing of the user's.
    let none = project.python("import os; os.listdir()", &json!({}));
    assert_eq!(project.seed.done("executePython", &none), "[]");
}

#[test]
fn what_is_not_below_a_project_is_refused_by_name() {
    let mut project = Project::new();
    let at = project.at.clone();
    let not_below = |field: &str, path: &Path| {
        let error = format!("permissions.{field}: {path:?} is not below {}", at.display());
        json!({"error": error, "errorType": "security", "suggestion": BELOW})
    };
    let link = at.join("link");
    std::os::unix::fs::symlink(at.with_file_name("private"), &link).expect("a link");
    let outside = [PathBuf::from("/etc"), at.with_file_name("private"), link, "/nowhere".into()];
    for path in outside {
        for field in ["read", "write"] {
            let expected = not_below(field, &path);
            project.refused("executePython", &json!({field: [path]}), &expected);
        }
    }
    let missing = at.join("missing");
    let error = format!("permissions.read: {missing:?} does not exist; name a directory that does");
    let expected = json!({"error": error, "errorType": "validation"});
    project.refused("executePython", &json!({"read": [missing]}), &expected);
}

#[test]
fn nothing_is_allowed_where_nothing_is_set() {
    let seed = &mut Seed::start();
    let said = seed.refused("executePython", &json!({"code": "1", "permissions": {"read": ["/"]}}));
    let error = "permissions.read: \"/\" is not below an allowed directory: none is set";
    assert_eq!(said, json!({"error": error, "errorType": "security", "suggestion": BELOW}));
}

#[test]
fn more_than_one_directory_cannot_be_given() {
    let mut project = Project::new();
    let (data, other, at) = (project.at.join("data"), project.at.join("other"), project.at.clone());
    let expected = json!({
        "error": "permissions: one directory can be given to an execution, to read or also to \
                  write, with all that is below it; these are several",
        "errorType": "security",
        "suggestion": "name one directory, or run the code once for each of them",
    });
    for permissions in [
        json!({"read": [data, other]}),
        json!({"write": [data, other]}),
        json!({"read": [data], "write": [other]}),
        // Reading all of it was asked for, but not writing all of it.
        json!({"read": [at], "write": [data]}),
    ] {
        project.refused("executePython", &permissions, &expected);
    }
}

#[test]
fn typescript_has_no_files_and_nobody_a_network() {
    let mut project = Project::new();
    let data = project.at.join("data");
    let expected = json!({
        "error": "permissions.read: typescript code has no files here",
        "errorType": "security",
        "suggestion": "use executePython, or call a tool of an MCP server for files",
    });
    project.refused("executeTypescript", &json!({"read": [data]}), &expected);
    let expected = json!({
        "error": "permissions.net: code has no network here, and none can be given",
        "errorType": "security",
        "suggestion": "leave net out; call a tool of an MCP server that fetches instead",
    });
    for tool in ["executeTypescript", "executePython"] {
        project.refused(tool, &json!({"net": ["localhost"]}), &expected);
    }
}

#[test]
fn the_users_own_settings_are_stronger() {
    let kept = tempfile::tempdir().expect("a directory");
    let at = fs::canonicalize(kept.path()).expect("a path");
    let seed = &mut Seed::with(&json!({}), |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        crate::support::keep_settings(&home, "[files]\nwritable = false\n");
        command.env("ALLOWED_PROJECTS", &at);
    });
    let ask = |field: &str| json!({"code": WRITE, "permissions": {field: [at]}});
    let error = "permissions.write: directories are only to be read (`files.writable = false` in \
                 config.toml)";
    let said = seed.refused("executePython", &ask("write"));
    assert_eq!(said, json!({"error": error, "errorType": "security"}));
    assert_eq!(seed.done("executePython", &ask("read")), "Read-only file system\n");
}
