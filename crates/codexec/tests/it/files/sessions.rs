//! Directories of the user's that sessions work in, from one cell to the next.

use std::fs;

use serde_json::{Value, json};

use super::Project;
use crate::support::ToolText;

impl Project {
    /// Sends a cell to the session of this language.
    fn cell(&mut self, language: &str, code: &str) -> ToolText {
        let dir = self.path("");
        let arguments =
            json!({"language": language, "working_dir": dir, "session": language, "code": code});
        self.client.call("execute_code", &arguments)
    }
}

/// Code that changes to a directory, deletes everything in the current one, and prints its path.
fn acts(language: &str, dir: &str) -> [String; 3] {
    match language {
        "python" => [
            format!("import os, shutil\nos.chdir('{dir}')"),
            "for name in os.listdir('.'): \
             shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)"
                .to_owned(),
            "print(os.getcwd())".to_owned(),
        ],
        "node" => [
            format!("process.chdir('{dir}'); 0"),
            "for (const name of require('fs').readdirSync('.')) \
             require('fs').rmSync(name, {recursive: true}); 0"
                .to_owned(),
            "console.log(process.cwd()); 0".to_owned(),
        ],
        _ => [format!("cd {dir}"), "rm -rf ./*".to_owned(), "pwd".to_owned()],
    }
}

/// Code that makes a directory, changes to it, and deletes it.
fn delete_own(language: &str) -> &'static str {
    match language {
        "python" => "os.mkdir('/box/work/own'); os.chdir('/box/work/own'); os.rmdir('../own')",
        "node" => {
            "require('fs').mkdirSync('/box/work/own'); process.chdir('/box/work/own'); \
             require('fs').rmdirSync('../own'); 0"
        }
        _ => "mkdir /box/work/own; cd /box/work/own; rmdir ../own",
    }
}

/// THREAT[FIL-13]
#[test]
fn fil_13_a_current_directory_that_is_gone_is_an_error_and_no_other_directory() {
    for language in ["bash", "python", "node"] {
        let mut project = Project::new("");
        let [enter, delete_all, whereabouts] = acts(language, "scratch");
        project.write("kept/file", "mine");
        project.write("scratch/file", "1");
        project.cell(language, &enter).fine();
        fs::remove_dir_all(project.path("scratch")).expect("removed");
        let is_gone = |said: ToolText, path: &str| {
            let text = said.failed();
            assert!(text.contains(path) && text.contains("is gone"), "{language}: {text}");
            assert!(text.contains("the session is in /box/work now"), "{language}: {text}");
        };
        is_gone(project.cell(language, &delete_all), "/box/work/scratch");
        assert_eq!(project.text("kept/file"), "mine", "{language}");
        assert!(project.cell(language, &whereabouts).fine().starts_with("/box/work"), "{language}");
        // The same where the code itself has deleted its current directory.
        project.cell(language, delete_own(language)).fine();
        is_gone(project.cell(language, &delete_all), "/box/work/own");
        assert_eq!(project.text("kept/file"), "mine", "{language}");
        assert!(project.cell(language, &whereabouts).fine().starts_with("/box/work"), "{language}");
    }
}

/// THREAT[FIL-13]
#[test]
fn fil_13_a_shell_knows_its_directory_without_its_variable() {
    let mut project = Project::new("");
    project.write("kept/file", "mine");
    project.write("a b/file", "1");
    project.cell("bash", "set -u; cd 'a b'; unset PWD").fine();
    assert_eq!(project.cell("bash", "ls").fine(), "file");
    project.cell("bash", "unset PWD").fine();
    fs::remove_dir_all(project.path("a b")).expect("removed");
    let text = project.cell("bash", "rm -rf ./*").failed();
    assert!(text.contains(r"/box/work/a\ b is gone"), "{text}");
    // A shell that is replaced in the middle of a cell stands where the old one stood.
    project.write("c/file", "1");
    project.cell("bash", "cd c; rm -r ../c; kill -HUP $$");
    let said = project.cell("bash", "rm -rf ./*");
    assert!(said.is_error, "{said:?}");
    assert_eq!(project.text("kept/file"), "mine");
}

/// THREAT[FIL-14]
#[test]
fn fil_14_what_is_written_between_two_cells_is_committed_and_told() {
    let mut project = Project::new("");
    project.write("f1", "old");
    let late = "(sleep 0.3; mkdir -p build; echo built > build/out; echo changed > f1; \
                echo evil > .mcp.json; cd /; exec sleep 9.0017) >/dev/null 2>&1 & cat f1";
    assert_eq!(project.cell("bash", late).fine(), "old");
    project.client.wait_for_process("9.0017");
    let said = project.cell("bash", "cat build/out f1; echo mine > f2").fine();
    let expected = "built\nchanged\n[artifacts]\ncreated f2 (5 bytes)\n\
                    [artifacts written between the cells]\n\
                    created build/out (6 bytes)\nmodified f1 (8 bytes)\n\
                    held back .mcp.json: it names programs that MCP clients start";
    assert_eq!(said, expected);
    for (name, text) in [("build/out", "built\n"), ("f1", "changed\n"), ("f2", "mine\n")] {
        assert_eq!(project.text(name), text);
    }
    assert!(!project.path(".mcp.json").exists());
    // Nothing is told twice, and what the user deletes meanwhile does not come back.
    fs::remove_dir_all(project.path("build")).expect("removed");
    assert_eq!(project.cell("bash", "cat f2").fine(), "mine");
    assert!(!project.path("build").exists());
}

/// THREAT[FIL-14]
#[test]
fn fil_14_what_is_written_after_the_last_cell_is_told_by_the_end() {
    let mut project = Project::new("");
    let code = format!(
        "const {{ session_id }} = await sessions.start('bash', 's', {{working_dir: {:?}}});
         await sessions.send(session_id, '(sleep 0.2; echo late > late) >/dev/null 2>&1 & echo 1 > early');
         await new Promise((done) => setTimeout(done, 800));
         return await sessions.close(session_id);",
        project.path("").display().to_string()
    );
    let said = project.client.call("execute_code", &json!({"code": code})).fine();
    let closed: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let expected = json!({"created": [{"path": "late", "bytes": 5}], "modified": [],
                          "deleted": [], "held_back": [], "conflicts": [], "left_out": 0});
    assert_eq!(closed["changes"], expected, "{said}");
    assert_eq!(project.text("late"), "late\n");
}

/// THREAT[FIL-14]: a directory at the top of the host's file tree has a path of its own in a room.
#[test]
fn fil_14_an_open_file_of_a_directory_at_the_top_keeps_its_layer() {
    let Ok(at) = tempfile::Builder::new().prefix("codexec-it-").tempdir_in("/") else {
        assert!(!crate::attacks::host::is_root(), "root can make it");
        return;
    };
    let mut project = Project::at(at, "");
    let path = project.path("log").display().to_string();
    let late = format!(
        "(cd /tmp; exec 9>>{path}; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo late >&9; \
         : > /tmp/done) >/dev/null 2>&1 & while [ ! -e log ]; do sleep 0.01; done"
    );
    project.cell("bash", &late).fine();
    project.cell("bash", ": > /tmp/go; while [ ! -e /tmp/done ]; do sleep 0.01; done").fine();
    assert_eq!(project.text("log"), "late\n");
}
