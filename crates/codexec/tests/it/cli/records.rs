//! Scripts, logs, sessions and packages at a terminal.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::{CliHome, Ran, fine, refused};
use crate::support::command;

fn parse_stdout(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("not JSON: {ran:?}"))
}

/// The first words of each line.
fn words(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn a_script_from_its_file_to_its_end() {
    let desk =
        CliHome::new(&[("count.py", "import sys\nprint(input, sys.argv[1:])\nlen(sys.argv)")]);
    let save = ["scripts", "save", "count", "-f", "count.py", "-d", "Counts pears", "-t", "fruit"];
    assert_eq!(desk.run(&save), fine("version 1 in HOME/state/scripts/count/script.py"));
    let run = ["scripts", "run", "count", "--input", "{\"a\": 1}", "--", "x", "--y"];
    assert_eq!(desk.run(&run), fine("{'a': 1} ['x', '--y']\n3"));
    let exec = ["exec", "--script", "count", "--", "x"];
    assert_eq!(desk.run(&exec), fine("None ['x']\n[result]\n2"));
    let ran = parse_stdout(&desk.run(&["scripts", "run", "count", "--json"]));
    assert_eq!((&ran["success"], &ran["result"]), (&true.into(), &1.into()), "{ran}");
    assert_eq!(words(&desk.run(&["scripts", "list"]).stdout), ["NAME", "count"]);
    assert_eq!(words(&desk.run(&["scripts", "search", "pears"]).stdout), ["NAME", "count"]);
    let shown = desk.run(&["scripts", "show", "count"]);
    assert!(shown.stdout.contains("Counts pears") && shown.stdout.contains("sys.argv[1:]"));
    let code = desk.run(&["scripts", "show", "count", "--code"]);
    assert_eq!(code.stdout, "import sys\nprint(input, sys.argv[1:])\nlen(sys.argv)");

    let second = desk.run_with(&["scripts", "save", "count", "-l", "bash"], "echo two; exit 3");
    assert_eq!(second, fine("version 2 in HOME/state/scripts/count/script.sh"));
    assert_eq!(words(&desk.run(&["scripts", "versions", "count"]).stdout), ["VERSION", "2", "1"]);
    let failed = desk.run(&["scripts", "run", "count"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), "two\n"), "{failed:?}");
    assert_eq!(desk.run(&["scripts", "run", "count", "--version", "1"]).code, Some(0));

    assert_eq!(desk.run(&["scripts", "delete", "count"]).code, Some(0));
    let gone = desk.run(&["scripts", "show", "count"]);
    let sentence = "there is no script \"count\"; `codexec scripts list` shows all scripts\n";
    assert_eq!((gone.code, gone.stderr.as_str()), (Some(1), sentence));
    assert_eq!(desk.run(&["scripts", "search", "pears"]).code, Some(1));
}

#[test]
fn mistakes_are_told_in_words_of_options() {
    let desk = CliHome::new(&[("a.txt", "1"), ("a.py", "1")]);
    for (args, sentence) in [
        (
            &["logs", "--limit", "0"][..],
            "--limit: 0 is not allowed; it must be a whole number from 1 to 100",
        ),
        (
            &["logs", "--since", "soon"],
            "--since: \"soon\" is not a valid time; write it like 2026-02-09 or 2026-02-09T14:30:00Z",
        ),
        (
            &["scripts", "save", "x", "-f", "a.txt"],
            "--language: the extension of a.txt is unknown; name a language",
        ),
        (
            &["scripts", "save", "x", "-f", "a.py", "--parameters", "{"],
            "--parameters is not JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            &["sessions", "open", "-l", "cobol"],
            "unknown --language \"cobol\"; use typescript, javascript, python, bash, node, or ts, js, py, sh, mjs",
        ),
    ] {
        assert_eq!(desk.run(args), refused(sentence), "{args:?}");
    }
    let name = desk.run(&["scripts", "save", "../x", "-f", "a.py"]);
    assert_eq!(name.code, Some(2));
    assert!(name.stderr.contains("cannot be the name of a script"), "{}", name.stderr);
    // Reported by the parser of the command line.
    assert_eq!(desk.run(&["exec", "--script", "x", "1"]).code, Some(2));
    assert_eq!(desk.run(&["scripts", "search"]).code, Some(2));
}

#[test]
fn what_ran_is_found_and_shown() {
    let desk = CliHome::new(&[]);
    assert_eq!(desk.run(&["exec", "-l", "ts", "console.log('pears \\u001b[2J'); 1"]).code, Some(0));
    assert_eq!(desk.run(&["exec", "-l", "py", "1/0"]).code, Some(1));
    let all = desk.run(&["logs"]);
    assert_eq!(all.stdout.lines().count(), 3, "{}", all.stdout);
    let failed = desk.run(&["logs", "--status", "failed", "--language", "python"]);
    assert_eq!(failed.stdout.lines().count(), 2, "{}", failed.stdout);
    let page = desk.run(&["logs", "-n", "1"]);
    assert_eq!(page.stderr, "1 to 1 of 2; more with --offset 1\n");
    let none = desk.run(&["logs", "apples"]);
    assert_eq!((none.code, none.stderr.as_str()), (Some(1), "no execution matches\n"));
    let found = parse_stdout(&desk.run(&["logs", "pears", "--json"]));
    assert_eq!(found["total_count"], 1, "{found}");
    let id = found["results"][0]["execution_id"].as_str().expect("an id").to_owned();
    let whole = desk.run(&["logs", "show", &id]);
    assert!(whole.stdout.contains("[stdout]\npears \\u{1b}[2J\n"), "{}", whole.stdout);
    assert!(!whole.stdout.contains('\u{1b}'), "a terminal would obey it");
    assert_eq!(parse_stdout(&desk.run(&["logs", "show", &id, "--json"]))["status"], "success");
    assert_eq!(desk.run(&["logs", "show", "exec_nope"]).code, Some(1));
    // The beginning of an id is enough, with or without its first word.
    for start in [&id[..17], &id[5..17]] {
        assert_eq!(desk.run(&["logs", "show", start]), whole, "{start}");
    }
    let both = desk.run(&["logs", "show", "exec_"]);
    assert_eq!(both.code, Some(1), "{both:?}");
}

#[test]
fn executions_are_shown_as_they_end() {
    let desk = CliHome::new(&[]);
    assert_eq!(desk.run(&["exec", "-l", "ts", "'before'"]).code, Some(0));
    let mut follow = command(desk.path());
    follow.args(["logs", "--follow"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut follow = follow.spawn().expect("codexec starts");
    let mut lines = BufReader::new(follow.stdout.take().expect("piped")).lines();
    let mut find = |what: &str| {
        let found =
            lines.by_ref().map(|line| line.expect("UTF-8")).find(|line| line.contains(what));
        assert!(found.is_some(), "{what}");
    };
    find("'before'");
    assert_eq!(desk.run(&["exec", "-l", "ts", "'after'"]).code, Some(0));
    find("'after'");
    follow.kill().expect("killed");
    follow.wait().expect("it ends");
}

#[test]
fn a_session_is_worked_in_cell_by_cell() {
    let desk = CliHome::new(&[]);
    let cells =
        "x = 1\n\ndef f():\n    return x + 1\n\n    # the same cell\n\nf()\n\n1/0\n\nprint('on')\n";
    let ran = desk.run_with(&["sessions", "open", "-l", "python"], cells);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "2\non\n"), "{ran:?}");
    assert!(ran.stderr.contains("ZeroDivisionError"), "{}", ran.stderr);
    let ran = desk.run_with(&["sessions", "open", "-l", "bash"], "x=5\n\necho $x");
    assert_eq!(ran, fine("5"));
    let ran = desk.run_with(&["sessions", "open", "-l", "js", "--json"], "const x = 1\n\nx + 1");
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((lines.len(), &lines[1]["stdout"]), (2, &"2".into()));
    let failed = desk.run_with(&["sessions", "open", "-l", "bash"], "exit 4\n\necho on");
    let said_so = (failed.code, failed.stdout.as_str(), failed.stderr.as_str());
    assert_eq!(said_so, (Some(1), "on\n", "NONZERO_EXIT\n"));
    let end = "import os\nos._exit(4)\n\nprint('never')";
    let ended = desk.run_with(&["sessions", "open", "-l", "python"], end);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains("the session has ended: process_exit"), "{}", ended.stderr);
    let list = parse_stdout(&desk.run(&["sessions", "list", "--json"]));
    let sessions = list["sessions"].as_array().expect("a list");
    let reasons: Vec<&Value> = sessions.iter().map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["process_exit", "manual", "manual", "manual", "manual"]);
    assert_eq!(words(&desk.run(&["sessions", "list"]).stdout).len(), 6);
}

#[test]
fn packages_that_are_none_are_refused() {
    let desk = CliHome::new(&[]);
    let none = desk.run(&["packages", "list"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    let bad = desk.run(&["packages", "install", "--", "../x"]);
    assert_eq!(bad.code, Some(2), "{bad:?}");
    assert!(bad.stderr.contains("../x"), "{}", bad.stderr);
}
