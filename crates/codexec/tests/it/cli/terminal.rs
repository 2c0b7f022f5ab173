//! What a person at a terminal sees.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;

use super::CliHome;
use crate::startup::upstream;
use crate::support::command;

/// Runs a command at a terminal of 60 columns: each argument before `--` is typed at the next
/// prompt.
const TERMINAL: &str = "\
import fcntl, os, pty, struct, sys, termios
at = sys.argv.index('--')
typed, command = sys.argv[1:at], sys.argv[at + 1:]
pid, master = pty.fork()
if not pid:
    os.execv(command[0], command)
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 60, 0, 0))
said, seen = b'', 0
try:
    while data := os.read(master, 4096):
        said += data
        if typed and said.count(b'>>> ', seen) > 0:
            seen = len(said)
            os.write(master, typed.pop(0).encode() + b'\\r')
except OSError:
    pass
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// The exit code, and what the terminal showed.
fn at_terminal(desk: &CliHome, typed: &[&str], args: &[&str]) -> (Option<i32>, String) {
    with_variable(desk, typed, args, ("TERM", "xterm"))
}

fn with_variable(
    desk: &CliHome,
    typed: &[&str],
    args: &[&str],
    variable: (&str, &str),
) -> (Option<i32>, String) {
    let mut codexec = command(desk.path());
    codexec.args(args);
    let mut python = Command::new("python3");
    python.arg("-c").arg(TERMINAL).args(typed).arg("--");
    python.arg(codexec.get_program()).args(codexec.get_args());
    python.envs(codexec.get_envs().filter_map(|(key, value)| Some((key, value?))));
    for (key, _) in codexec.get_envs().filter(|(_, value)| value.is_none()) {
        python.env_remove(key);
    }
    python.env_remove("NO_COLOR").env_remove("COLUMNS").env("TERM", "xterm");
    python.env(variable.0, variable.1);
    let output = python.current_dir(desk.path()).output().expect("python3 runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"))
}

#[test]
fn values_are_indented_and_errors_are_coloured() {
    let desk = CliHome::new(&[]);
    let shown = at_terminal(&desk, &[], &["exec", "-l", "ts", "({ a: [1], b: 'x' })"]);
    assert_eq!(shown, (Some(0), "{\n  \"a\": [\n    1\n  ],\n  \"b\": \"x\"\n}\n".to_owned()));
    let failing = ["exec", "-l", "ts", "throw new Error('boom')"];
    let (code, shown) = at_terminal(&desk, &[], &failing);
    assert!(code == Some(1) && shown.contains("\u{1b}[31mRUNTIME_ERROR\u{1b}[0m: boom"), "{shown}");
    let (_, plain) = with_variable(&desk, &[], &failing, ("NO_COLOR", "1"));
    assert!(plain.contains("RUNTIME_ERROR: boom") && !plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn a_table_fits_the_terminal() {
    let servers = json!({"a": upstream(&["a"]), "another": upstream(&["b"])});
    let desk = CliHome::with_servers(&servers);
    let file = desk.path().join("servers.json").display().to_string();
    let args = ["servers", "list", "--no-check", "--mcp-config", &file];
    let (code, shown) = with_variable(&desk, &[], &args, ("NO_COLOR", "1"));
    let longest = shown.lines().map(|line| line.chars().count()).max();
    assert!(code == Some(0) && longest <= Some(60), "{shown}");
    assert!(shown.contains('…'), "{shown}");
}

#[test]
fn a_session_remembers_lines_and_ends_with_exit() {
    let desk = CliHome::new(&[]);
    let open = ["sessions", "open", "-l", "python"];
    let (code, shown) = at_terminal(&desk, &["x = 41", "print(x + 1)", "exit()"], &open);
    assert!(code == Some(0) && shown.contains("42"), "{shown}");
    // The arrow brings back `exit()`, then `print`.
    let up = "\u{1b}[A";
    let typed = ["x = 1", &format!("{up}{up}{up}"), "exit()"];
    let (code, shown) = at_terminal(&desk, &typed, &open);
    assert!(code == Some(0) && shown.lines().any(|line| line == "2"), "{shown}");
}

/// The list waits for the one that hangs, but not with the news about the other.
#[test]
fn a_server_that_fails_is_reported_while_others_start() {
    let desk = CliHome::with_servers(&json!({
        "hung": {"command": "sleep", "args": ["600"]},
        "broken": {"command": "/nowhere/server"},
    }));
    let mut command = command(desk.path());
    command.args(["tools", "list", "--mcp-config", "servers.json"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("codexec starts");
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let line = stderr.lines().map(|line| line.expect("UTF-8")).find(|line| line.contains("broken"));
    let is_running = child.try_wait().expect("its state").is_none();
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let expected = "server broken: it did not start: \"/nowhere/server\" was not found; install it, \
                    or write its whole path";
    assert_eq!(line.as_deref(), Some(expected));
    assert!(is_running, "it was reported at the end only");
}
