//! Files of the user's that code moves, links or stashes: none of them is lost.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;

use crate::files::Project;

/// THREAT[FIL-12]
#[test]
fn fil_12_moved_files_arrive_and_leave() {
    let mut project = Project::new("max-mib = 200\n");
    for (name, text) in [("a.txt", "A"), ("config", "old"), ("one", "1"), ("d/f", "F"), ("s", "x")]
    {
        project.write(name, text);
    }
    fs::write(project.path("big.bin"), vec![7; 70 << 20]).expect("written");
    let code = "mv a.txt b.txt; mv config config.bak; echo new > config; ln one two; \
                mkdir sub; mv d/f sub/g; rmdir d; sed -i.orig s/x/y/ s; mv big.bin large.bin";
    let said = project.bash(code).fine();
    let expected = "[artifacts]\ncreated b.txt (1 bytes)\ncreated config.bak (3 bytes)\n\
                    created large.bin (73,400,320 bytes)\ncreated s.orig (1 bytes)\n\
                    created sub/g (1 bytes)\ncreated two (1 bytes)\nmodified config (4 bytes)\n\
                    modified s (1 bytes)\ndeleted a.txt\ndeleted big.bin\ndeleted d/f";
    assert_eq!(said, expected);
    let texts = ["b.txt", "config", "config.bak", "one", "two", "sub/g", "s", "s.orig"];
    let texts = texts.map(|name| project.text(name));
    assert_eq!(texts, ["A", "new\n", "old", "1", "1", "F", "y", "x"]);
    assert_eq!(fs::metadata(project.path("large.bin")).expect("moved").len(), 70 << 20);
    assert!(!project.path("d").exists() && !project.path("a.txt").exists());
}

/// THREAT[FIL-12]
#[test]
fn fil_12_python_and_node_move_files_and_folders() {
    for (language, code) in [
        (
            "python",
            "import os, shutil\nos.rename('a', 'b')\nos.rename('d', 'e')\n\
                    shutil.move('b', 'e/c')\nos.makedirs('new/deep')",
        ),
        (
            "node",
            "const fs = await import('node:fs');\nfs.renameSync('a', 'b');\n\
                  fs.renameSync('d', 'e'); fs.renameSync('b', 'e/c');\n\
                  fs.mkdirSync('new/deep', {recursive: true})",
        ),
    ] {
        let mut project = Project::new("");
        project.write("a", "A");
        project.write("d/deep/f", "F");
        let dir = project.path("");
        let call = json!({"language": language, "code": code, "working_dir": dir});
        let said = project.client.call("execute_code", &call).fine();
        assert!(!said.contains("conflict"), "{language}: {said}");
        assert_eq!((project.text("e/c"), project.text("e/deep/f")), ("A".into(), "F".into()));
        assert!(!project.path("a").exists() && !project.path("d").exists(), "{language}: {said}");
        assert!(project.path("new/deep").is_dir(), "{language}: {said}");
    }
}

/// THREAT[FIL-12]
#[test]
fn fil_12_what_is_moved_to_where_it_is_held_back_stays() {
    let mut project = Project::new("");
    project.write("sub/.git/config", "[core]\n");
    project.write("sub/CLAUDE.md", "rules");
    project.write("sub/code", "12345");
    project.write("notes.md", "notes");
    let said = project.bash("mv sub moved; mv notes.md AGENTS.md").fine();
    assert!(said.contains("created moved/code (5 bytes)"), "{said}");
    let kept = [("sub/.git/config", "[core]\n"), ("sub/CLAUDE.md", "rules"), ("notes.md", "notes")];
    for (name, text) in kept {
        assert_eq!(project.text(name), text, "{name}: {said}");
    }
    assert!(!project.path("AGENTS.md").exists() && !project.path("moved/.git").exists());
}

/// THREAT[FIL-12]
#[test]
fn fil_12_a_stash_takes_nothing_away_outside() {
    let mut project = Project::new("");
    let dir = project.path("");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=u", "-c", "user.email=u@example.org"];
        let mut git = Command::new("git");
        git.current_dir(&dir).args(identity).args(arguments);
        let output = git.output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    git(&["init", "-q"]);
    fs::write(dir.join("work"), "committed").expect("written");
    git(&["add", "work"]);
    git(&["commit", "-qm", "first"]);
    fs::write(dir.join("work"), "not committed yet").expect("written");
    let said = project.bash(
        "git -c user.name=g -c user.email=g@example.org -c safe.directory='*' stash; cat work",
    );
    let said = said.fine();
    assert!(said.contains("committed\n") && said.contains("held back work: `git stash`"), "{said}");
    assert_eq!(project.text("work"), "not committed yet");
    assert_eq!(git(&["status", "--porcelain"]), " M work\n");
}

/// THREAT[FIL-7]
#[test]
fn fil_7_a_folder_that_the_user_exchanges_is_left_alone() {
    let mut project = Project::new("");
    for (name, text) in [("v1/s/f", "1"), ("v1/s/del", "1"), ("v2/s/f", "2"), ("v2/s/del", "2")] {
        project.write(name, text);
    }
    let dir = project.path("");
    let call = json!({"language": "bash", "working_dir": dir,
        "code": "echo guest > v1/s/f; rm v1/s/del; sleep 2.0071"});
    let id = project.client.send_call("execute_code", &call);
    project.client.wait_for_process("2.0071");
    fs::rename(project.path("v1"), project.path("v0")).expect("renamed");
    fs::rename(project.path("v2"), project.path("v1")).expect("renamed");
    let said = project.client.wait_call(id).text;
    assert!(said.contains("conflict v1"), "{said}");
    let texts = ["v1/s/f", "v1/s/del", "v0/s/f", "v0/s/del"].map(|name| project.text(name));
    assert_eq!(texts, ["2", "2", "1", "1"]);
}

/// THREAT[FIL-11]
#[test]
fn fil_11_code_cannot_work_inside_what_is_held_back() {
    let mut project = Project::new("");
    project.write(".git/hooks/x.sample", "");
    project.write(".vscode/settings.json", "{}");
    project.write("env/pyvenv.cfg", "");
    project.write("env/bin/python", "");
    project.write("src/x", "");
    for name in [".git/hooks", ".git", ".vscode", "env/bin"] {
        let dir = project.path(name);
        let text = project.bash_in(&dir, "echo evil > planted").failed();
        assert!(text.contains("code may not write in "), "{name}: {text}");
        assert!(!dir.join("planted").exists(), "{name}");
        let code = format!(
            "const s = await sessions.start('bash', {{working_dir: {dir:?}}});\n\
             await sessions.send(s.session_id, 'echo evil > planted')"
        );
        project.client.call("execute_code", &json!({"language": "typescript", "code": code}));
        assert!(!dir.join("planted").exists(), "{name}");
    }
    let dir = project.path("src");
    project.bash_in(&dir, "echo fine > y").fine();
}

/// THREAT[FIL-2]
#[test]
fn fil_2_no_repository_is_planted_under_another_name() {
    let mut project = Project::new("");
    project.write("docs/ai.md", "mine");
    symlink("docs/ai.md", project.path("CLAUDE.md")).expect("linked");
    let said = project
        .bash("git init -q --bare fx; echo x > docs/ai.md; mkdir -p objects refs; echo r > HEAD");
    let said = said.fine();
    for name in ["fx/HEAD", "HEAD"] {
        assert!(!project.path(name).exists(), "{name}: {said}");
    }
    assert_eq!(project.text("docs/ai.md"), "mine", "{said}");
}

#[test]
fn an_empty_folder_is_made_and_told() {
    let mut project = Project::new("");
    assert_eq!(project.bash("mkdir -p e/f").fine(), "[artifacts]\ncreated e/f/ (0 bytes)");
    assert!(project.path("e/f").is_dir());
    assert_eq!(project.bash("rmdir e/f").fine(), "[artifacts]\ndeleted e/f/");
    assert!(!project.path("e/f").exists() && project.path("e").is_dir());
}
