//! `exec`: where code and data come from, where output goes, and with which exit code.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{CliHome, Ran, fine, refused};
use crate::support::command;

const PROGRAMS: [(&str, &str); 3] = [
    ("python", "import sys\nprint(sys.stdin.readline().strip().upper(), flush=True)\nsys.exit(7)"),
    ("bash", "read -r line; echo \"${line^^}\"; exit 7"),
    (
        "node",
        "import { createInterface } from 'node:readline';\n\
         for await (const line of createInterface({ input: process.stdin })) {\n\
           console.log(line.toUpperCase());\n  process.exit(7);\n}",
    ),
];

#[test]
fn programs_read_standard_input_and_give_their_own_exit_code() {
    let desk = CliHome::new(&[]);
    for (language, code) in PROGRAMS {
        let expected = Ran { code: Some(7), stdout: "HELLO\n".to_owned(), stderr: String::new() };
        assert_eq!(desk.run_with(&["exec", "-l", language, code], "hello\n"), expected);
        let ran = desk.run_with(&["exec", "--json", "-l", language, code], "hello\n");
        let value: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!((&value["outcome"], &value["exit_code"]), (&"exited".into(), &7.into()));
    }
    // More than any pipe or buffer holds.
    let long = "x".repeat(3 << 20);
    let count = "import sys\nlen(sys.stdin.read())";
    assert_eq!(desk.run_with(&["exec", "-l", "py", count], &long), fine("3145728"));
    let given = ["exec", "-l", "bash", "-i", "[1]", "cat"];
    assert_eq!(desk.run_with(&given, "not this"), fine("[1]"));
    assert_eq!(
        desk.run_with(&["exec", "-l", "ts", "-i", "-", "input.a"], r#"{"a": 1}"#),
        fine("1")
    );
}

/// Both happen while the code runs: it waits for the answer to what it has written.
#[test]
fn output_comes_at_once_and_input_when_it_is_written() {
    let desk = CliHome::new(&[]);
    for (language, code) in [
        ("python", "import sys\nprint('name?')\nprint('hello', sys.stdin.readline().strip())"),
        ("bash", "echo 'name?'; read -r name; echo \"hello $name\""),
        (
            "node",
            "import { createInterface } from 'node:readline';\nconsole.log('name?');\n\
             for await (const line of createInterface({ input: process.stdin })) {\n\
               console.log('hello', line);\n  process.exit(0);\n}",
        ),
    ] {
        let mut child = start(command(desk.path()).args(["exec", "-l", language, code]));
        let mut stdin = child.stdin.take().expect("piped");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut next = || lines.next().expect("a line").expect("UTF-8");
        assert_eq!(next(), "name?", "{language}");
        stdin.write_all(b"Ada\n").expect("written");
        assert_eq!(next(), "hello Ada", "{language}");
        // Standard input is still open, and the program ends all the same.
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{language}");
        drop(stdin);
    }
}

/// As in `codexec exec .. | head -1`.
#[test]
fn the_code_ends_when_nobody_reads_its_output() {
    let desk = CliHome::new(&[]);
    for (language, code) in [
        ("bash", "while echo line; do :; done"),
        (
            "ts",
            "for (;;) { console.log('line'); await new Promise((done) => setTimeout(done, 1)); }",
        ),
    ] {
        let args = ["exec", "-t", "60s", "-l", language, code];
        let mut child = start(command(desk.path()).args(args));
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "line\n");
        drop(output);
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(141), ""), "{language}");
    }
}

fn start(command: &mut Command) -> std::process::Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("codexec starts")
}

#[test]
fn code_comes_from_a_file_by_its_plain_name() {
    let desk = CliHome::new(&[
        ("first.ts", "const x: number = 42; x"),
        ("first.py", "41 + 1"),
        ("tool", "#!/usr/bin/env python3\n41 + 1"),
    ]);
    for file in ["first.ts", "first.py", "./first.py", "./tool"] {
        assert_eq!(desk.run(&["exec", file]), fine("42"), "{file}");
    }
    assert_eq!(desk.run_with(&["exec", "-l", "py", "-f", "-"], "41 + 1"), fine("42"));
    let missing = "there is no file second.ts; to run this text as code, name its language with \
                   --language";
    assert_eq!(desk.run(&["exec", "second.ts"]), refused(missing));
}

#[test]
fn each_stream_and_each_failure_has_its_place() {
    let desk = CliHome::new(&[]);
    let both = "import sys\nprint('out')\nprint('err', file=sys.stderr)";
    let expected = Ran { code: Some(0), stdout: "out\n".to_owned(), stderr: "err\n".to_owned() };
    assert_eq!(desk.run(&["exec", "-l", "py", both]), expected);
    assert_eq!(desk.run(&["exec", "-l", "bash", "true"]).stdout, "");
    let stopped = desk.run(&["exec", "-l", "bash", "-t", "200ms", "echo so far; exec sleep 60"]);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(1), "so far\n"));
    assert!(stopped.stderr.contains("--timeout"), "{stopped:?}");
    let ran = desk.run(&["exec", "-l", "ts", "--json", "-t", "0", "1"]);
    let value: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, &value["outcome"]), (Some(2), &"not_run".into()), "{ran:?}");
}
