//! Directories of the user's that sessions work in, from one cell to the next.

use std::fs;

use serde_json::{Value, json};

use super::Project;
use crate::support::{ToolText, descendants};

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
    let (closed, note) = said.split_once('\n').expect("a note");
    let closed: Value = serde_json::from_str(closed).unwrap_or_else(|_| panic!("{said}"));
    let [early, late] = ["early", "late"].map(|name| project.path(name).display().to_string());
    let expected = format!(
        "[artifacts of code that this code ran]\ncreated {early} (2 bytes)\n\
         created {late} (5 bytes)"
    );
    assert_eq!(note, expected);
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

/// THREAT[FIL-8]: what is committed does not count any more. Files that the kernel frees later may
/// come on top, so a layer has at most twice as many as allowed.
#[test]
fn fil_8_a_session_may_write_as_much_again_after_each_commit() {
    for language in ["bash", "python"] {
        let mut project = Project::new("max-mib = 2\nmax-files = 400\n");
        // A file that is held back needs its folders in each new layer.
        let hold = match language {
            "python" => "import os; os.makedirs('a/b/.vscode'); open('a/b/.vscode/x', 'w').close()",
            _ => "mkdir -p a/b/.vscode; : > a/b/.vscode/x",
        };
        project.cell(language, hold).fine();
        for round in 0..10 {
            for code in filling(language, round) {
                let said = project.cell(language, &code).fine();
                assert!(said.starts_with("fine\n"), "{language}, {round}: {said}");
            }
            let length = |name: &str| {
                fs::metadata(project.path(&format!("{name}{round}"))).expect("there").len()
            };
            assert_eq!((length("large"), length("f379-")), (1_900_000, 0));
        }
        let look = match language {
            "python" => "print(os.listdir('a/b/.vscode'))",
            _ => "echo \"['$(ls a/b/.vscode)']\"",
        };
        assert_eq!(project.cell(language, look).fine(), "['x']");
    }
}

/// Code for three cells that fill the layer with bytes, then with files, and make a deep folder.
fn filling(language: &str, round: u32) -> [String; 3] {
    match language {
        "python" => [
            format!(
                "try:\n    \
                     with open('all', 'wb', 0) as file:\n        \
                         while file.write(bytes(65536)) == 65536: pass\n\
                 except OSError as error: assert error.errno == 28, error\n\
                 os.remove('all')\n\
                 with open('large{round}', 'wb', 0) as file: file.write(bytes(1_900_000))\n\
                 print('fine')"
            ),
            format!(
                "count = 0\n\
                 try:\n    \
                     while True: open(f'f{{count}}-{round}', 'x').close(); count += 1\n\
                 except OSError as error: assert error.errno == 28, error\n\
                 print('fine' if 380 <= count <= 800 else count)"
            ),
            format!("os.makedirs('deep{round}' + '/d' * 100); print('fine')"),
        ],
        _ => [
            format!(
                "head -c 3000000 /dev/zero > all 2>/dev/null; rm all; \
                 head -c 1900000 /dev/zero > large{round} && echo fine"
            ),
            format!(
                "i=0; while : > f$i-{round}; do i=$((i + 1)); done 2>/dev/null; \
                 if [ $i -ge 380 ] && [ $i -le 800 ]; then echo fine; else echo $i; fi"
            ),
            format!("mkdir -p deep{round}$(printf '/d%.0s' $(seq 100)) && echo fine"),
        ],
    }
}

/// THREAT[FIL-15]
#[test]
fn fil_15_a_session_does_not_take_code_for_another_directory() {
    let mut project = Project::new("");
    for name in ["mine/file", "other/file"] {
        project.write(name, "kept");
    }
    std::os::unix::fs::symlink("mine", project.path("link")).expect("linked");
    let mut send = |dir: &str, code: &str| {
        let dir = project.path(dir);
        let arguments =
            json!({"language": "bash", "working_dir": dir, "session": "s", "code": code});
        project.client.call("execute_code", &arguments)
    };
    assert_eq!(send("mine", "x=1; ls").fine(), "file");
    let said = send("other", "rm -rf ./*").failed();
    let begin = "INVALID_ARGS: working_dir: sess_";
    assert!(said.starts_with(begin) && said.contains("/mine\""), "{said}");
    assert_eq!(send("link", "echo $x").fine(), "1");
    let said = send("/etc", "rm -rf ./*").failed();
    assert!(said.starts_with("WORKING_DIR_NOT_ALLOWED: "), "{said}");
    let said = send("/etc/not-there", "rm -rf ./*").failed();
    assert!(said.starts_with("WORKING_DIR_NOT_ALLOWED: "), "{said}");
    // The same for code, and for a session without a directory.
    let [mine, other] = ["mine", "other"].map(|name| project.path(name).display().to_string());
    let code = format!(
        "const all = [];
         for (const options of [{{}}, {{working_dir: {mine:?}}}]) {{
           const {{ session_id }} = await sessions.start('bash', options);
           const sent = await sessions.send(session_id, 'rm -rf ./*', {{working_dir: {other:?}}})
             .catch((error) => error.message);
           all.push(sent);
         }}
         return all.join('\\n');"
    );
    let said = project.client.call("execute_code", &json!({"code": code})).fine();
    assert_eq!(said.matches("open another session").count(), 2, "{said}");
    for name in ["mine/file", "other/file"] {
        assert_eq!(project.text(name), "kept");
    }
}

/// THREAT[SES-11]
#[test]
fn ses_11_code_for_a_session_that_ended_does_not_run_in_a_new_one_unnoticed() {
    let mut project = Project::new("");
    project.write("kept/file", "mine");
    project.write("scratch/file", "1");
    project.cell("bash", "cd scratch; sleep 9.0031 >/dev/null 2>&1 & :").fine();
    project.client.wait_for_process("9.0031");
    let has_argument = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').any(|word| word == "9.0031")
    };
    let server = project.client.child.id();
    let job = descendants(server).into_iter().find(has_argument).expect("a job");
    let stat = fs::read_to_string(format!("/proc/{job}/stat")).expect("read");
    let shell = stat.split(' ').nth(3).expect("a parent");
    let killed = std::process::Command::new("kill").args(["-9", shell]).status().expect("run");
    assert!(killed.success());
    project.client.wait_for_no_process("9.0031");
    let text = project.cell("bash", "rm -rf ./*").failed();
    assert!(text.contains("has ended (process_exit), and its "), "{text}");
    assert_eq!(
        (project.text("kept/file"), project.text("scratch/file")),
        ("mine".into(), "1".into())
    );
    // From here on the client knows, and the new session says that it is one.
    let note = "[session]\nthis is a new session: the earlier one has ended (process_exit), and its \
                state is gone";
    assert_eq!(project.cell("bash", "pwd").fine(), format!("/box/work\n{note}"));
    assert_eq!(project.cell("bash", "pwd").fine(), "/box/work");
    let text = project.cell("bash", "kill -9 $$").failed();
    assert!(text.contains("has ended (process_exit)"), "{text}");
    assert_eq!(project.cell("bash", "pwd").fine(), format!("/box/work\n{note}"));
}

/// THREAT[SES-11]: an idle session ends without a word.
#[test]
fn ses_11_code_for_a_session_that_was_idle_too_long_does_not_run() {
    let mut project = Project::new("\n[sessions]\nidle-s = 1\n");
    project.write("kept/file", "mine");
    project.write("scratch/file", "1");
    project.cell("bash", "cd scratch; sleep 9.0032 >/dev/null 2>&1 & :").fine();
    project.client.wait_for_no_process("9.0032");
    let text = project.cell("bash", "rm -rf ./*").failed();
    let expected = "SESSION_ENDED: session: \"bash\" has ended (idle_timeout), and its variables and \
                    current directory are gone; the code was not run; send it again to open a new \
                    session with this name";
    assert_eq!(text, expected);
    assert_eq!(project.text("kept/file"), "mine");
    project.cell("bash", "rm -rf scratch").fine();
    assert!(!project.path("scratch").exists());
}

/// THREAT[FIL-16]
#[test]
fn fil_16_the_reply_tells_what_nested_code_changed() {
    let mut project = Project::new("");
    project.write("sub/old", "old");
    let [top, sub] = ["", "sub"].map(|name| project.path(name).display().to_string());
    let code = format!(
        "const {{ session_id }} = await sessions.start('bash', 's', {{working_dir: {top:?}}});
         await sessions.send(session_id, 'echo 1 > made; echo evil > .mcp.json');
         await sessions.send(session_id, 'echo 22 > made');
         const other = await sessions.start('bash', 't', {{working_dir: {sub:?}}});
         await sessions.send(other.session_id, 'rm old');
         await sessions.close(other.session_id);
         await sessions.send(session_id, 'echo secret > /tmp/unseen');
         return 'nothing';"
    );
    let said = project.client.call("execute_code", &json!({"code": code})).fine();
    let top = top.trim_end_matches('/');
    let expected = format!(
        "nothing\n[artifacts of code that this code ran]\ncreated {top}/made (2 bytes)\n\
         modified {top}/made (3 bytes)\ndeleted {top}/sub/old\n\
         held back {top}/.mcp.json: it names programs that MCP clients start"
    );
    assert_eq!(said, expected);
}
