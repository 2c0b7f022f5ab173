//! Zygotes of programs: what they can do, what they import, and what their guests share. Ids are
//! those of docs/threats.md.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Client, ToolText, command, keep_settings};

/// Looks around in whichever process imports it, and keeps what it saw.
const OBSERVER: &str = r#"
import ctypes, os, sys

def look():
    libc = ctypes.CDLL(None, use_errno=True)
    def fails(result):
        return ctypes.get_errno() if result < 0 else 0
    def lines(of):
        try:
            with open(f"/proc/{of}/cmdline") as file: return file.read()
        except OSError:
            return ""
    status = {}
    try:
        with open("/proc/self/status") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
    except OSError:
        pass
    return {
        "is_leader": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
        "unshare": fails(libc.unshare(0x20000)),
        "mount": fails(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)),
        "umount": fails(libc.umount2(b"/proc", 2)),
        "ptrace": fails(libc.ptrace(0, 0, 0, 0)),
        "socket": fails(libc.socket(2, 1, 0)),
        "capabilities": [status.get("CapEff"), status.get("CapBnd")],
        "filter": status.get("Seccomp"),
        "commands": [lines(one) for one in os.listdir("/proc") if one.isdigit()],
    }

# On the host, where the interpreter is asked about itself, nothing of this is tried.
if "zygote.py" in " ".join(sys.orig_argv if hasattr(sys, "orig_argv") else sys.argv):
    sys.seen_by_zygote = look()
"#;

const EPERM: i64 = 1;
/// CAP_SYS_ADMIN, by which guests enter their workers.
const TO_ENTER: &str = "0000000000200000";

/// A server with these settings, in a home of its own.
fn with_settings(settings: &str) -> Client {
    Client::with(&json!({}), |command| configure(command, settings))
}

fn configure(command: &mut Command, settings: &str) {
    let home = command.get_current_dir().expect("set").to_owned();
    keep_settings(&home, settings);
}

fn run(client: &mut Client, language: &str, code: &str) -> ToolText {
    client.call("execute_code", &json!({"language": language, "code": code}))
}

fn make_environment(at: &Path) {
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(at).status();
    assert!(made.expect("python3").success());
    let library = std::fs::read_dir(at.join("lib")).expect("listed").next().expect("one");
    let packages = library.expect("one").path().join("site-packages");
    std::fs::write(packages.join("observer.py"), OBSERVER).expect("written");
    // Imported when the interpreter starts, before anything that it is told to do.
    std::fs::write(packages.join("observer.pth"), "import observer\n").expect("written");
}

/// THREAT[ZYG-1]: the first thing that an interpreter imports finds the walls already there.
#[test]
fn zyg_1_a_zygote_is_confined_before_it_imports_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let venv = folder.path().join("venv");
    make_environment(&venv);
    let mut client = with_settings(&format!("[python]\nvenv = '{}'\n", venv.display()));
    // The server's own command line names its home.
    let home = client.home.path().display().to_string();
    let code = format!(
        "import sys\nseen = sys.seen_by_zygote\nlines = seen.pop('commands')\n\
         {{**seen, 'sees_any': bool(lines), 'sees_server': any({home:?} in one for one in lines)}}"
    );
    let said = run(&mut client, "python", &code);
    let seen: Value = serde_json::from_str(&said.fine()).expect("JSON");
    for refused in ["unshare", "mount", "umount", "ptrace", "socket"] {
        assert_eq!(seen[refused], EPERM, "{refused}: {seen}");
    }
    assert_eq!(seen["is_leader"], json!([true, true]), "{seen}");
    assert_eq!(seen["filter"], "2", "{seen}");
    assert_eq!(seen["capabilities"], json!([TO_ENTER, TO_ENTER]), "{seen}");
    assert_eq!((&seen["sees_any"], &seen["sees_server"]), (&json!(true), &json!(false)), "{seen}");
}

/// Starts the same command where the kernel has no Landlock.
const WITHOUT_LANDLOCK: &str = r#"
import ctypes, os, struct, sys
code = b"".join(struct.pack("HBBI", *one) for one in (
    (0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7fff0000)))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"#;

fn without_landlock(command: &mut Command) {
    let mut outer = Command::new("python3");
    outer.arg("-c").arg(WITHOUT_LANDLOCK);
    wrap(&mut outer, command);
    *command = outer;
}

/// Lets `outer` start `inner`.
fn wrap(outer: &mut Command, inner: &Command) {
    outer.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer.current_dir(inner.get_current_dir().expect("set"));
}

/// THREAT[ZYG-2]
#[test]
fn zyg_2_a_guest_that_signals_its_group_reaches_only_itself() {
    let mut client = Client::with(&json!({}), |command| {
        configure(command, "[sandbox]\nlowered = ['landlock']\n");
        command.args(["--toolset", "codexec"]);
        without_landlock(command);
    });
    let value = |said: ToolText| -> Value {
        serde_json::from_str(&said.text).unwrap_or_else(|_| panic!("not JSON: {}", said.text))
    };
    let start = json!({"language": "python"});
    let [kept, other] = [(); 2].map(|()| value(client.call("start_session", &start)));
    let send = |client: &mut Client, session: &Value, code: &str| {
        let id = &session["session_id"];
        value(client.call("send_to_session", &json!({"session_id": id, "code": code})))
    };
    assert_eq!(send(&mut client, &kept, "x = 20")["success"], true);
    let suicide = "import os, signal\nos.kill(0, signal.SIGKILL)";
    assert_eq!(send(&mut client, &other, suicide)["success"], false);
    for language in ["python", "node", "bash"] {
        let code = match language {
            "python" => suicide,
            "node" => "process.kill(0, 'SIGKILL'); await new Promise(() => {})",
            _ => "kill -9 0; sleep 60",
        };
        let ran = value(run(&mut client, language, code));
        assert_eq!(ran["success"], false, "{language}: {ran}");
        assert_eq!(ran["error_code"], "CRASHED", "{language}: {ran}");
    }
    let ran =
        value(run(&mut client, "python", "import os\n[os.getpgrp(), os.getsid(0), os.getpid()]"));
    let ids = ran["result"].as_array().expect("three numbers");
    assert!(ids.iter().all(|id| *id == ids[2]), "{ran}");
    let log =
        value(client.call("get_execution_log", &json!({"execution_id": ran["execution_id"]})));
    let layers = log["sandbox_layers"].to_string();
    assert!(layers.contains("-landlock"), "the machine was to have none: {layers}");
    let sent = send(&mut client, &kept, "x + 1");
    assert_eq!(sent["stdout"], "21", "the others live on: {sent}");
}

/// THREAT[ZYG-3]: by any of the ways in which the kernel tells of files.
#[test]
fn zyg_3_a_guest_cannot_watch_what_the_host_runs() {
    let mut client = Client::start(&json!({}));
    let python = r#"
import ctypes, errno, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def name(result): return errno.errorcode[ctypes.get_errno()] if result < 0 else "DONE"
def attempt(work):
    try: return f"DONE {work()}"
    except OSError as error: return errno.errorcode[error.errno]
signal.signal(signal.SIGIO, signal.SIG_IGN)
folder = os.open("/usr/bin", os.O_RDONLY)
own = os.open("own", os.O_RDWR | os.O_CREAT)
os.unlink("own")
[name(libc.inotify_init()), name(libc.inotify_init1(0)), name(libc.inotify_add_watch(0, b"/usr/bin", 1)),
 name(libc.fanotify_init(0, 0)), attempt(lambda: fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS)),
 attempt(lambda: fcntl.fcntl(own, fcntl.F_SETLEASE, fcntl.F_WRLCK)),
 attempt(lambda: fcntl.fcntl(own, fcntl.F_GETFD))]
"#;
    let expected = r#"["ENOSYS","ENOSYS","ENOSYS","ENOSYS","EPERM","EPERM","DONE 1"]"#;
    assert_eq!(run(&mut client, "python", python).fine(), expected);
    // Node says so as of any error, and its other way of watching works.
    let node = r#"
const fs = require("node:fs");
fs.writeFileSync("own", "1");
let watched;
try { fs.watch("/usr/bin"); watched = "DONE" } catch (error) { watched = error.code }
const changed = new Promise((told) => fs.watchFile("own", { interval: 20 }, (now) => told(now.size)));
// It looks for the first time whenever it likes, so there is always something new to see.
let bytes = 1;
const writing = setInterval(() => fs.writeFileSync("own", "1".repeat(++bytes)), 10);
const size = await changed;
clearInterval(writing);
fs.unwatchFile("own");
fs.unlinkSync("own");
[watched, size > 1]
"#;
    assert_eq!(run(&mut client, "node", node).fine(), r#"["ENOSYS",true]"#);
}

/// THREAT[ZYG-4]: the host saw no memory run out.
#[test]
fn zyg_4_a_guest_cannot_say_that_its_memory_ran_out() {
    let mut client = Client::start(&json!({}));
    for code in ["raise MemoryError", "bytes(1 << 60)"] {
        let said = run(&mut client, "python", code);
        assert!(said.is_error && said.text.contains("MemoryError"), "{code}: {}", said.text);
        assert!(!said.text.contains("MEMORY_LIMIT"), "{code}: {}", said.text);
    }
    let full = "kept = bytearray(450 << 20)\nbytes(1 << 60)";
    let said = run(&mut client, "python", full);
    assert!(said.text.starts_with("MEMORY_LIMIT"), "{}", said.text);
}

/// What a container without user namespaces is like.
#[test]
fn all_languages_run_where_the_layer_user_is_lowered_and_cannot_be_had() {
    let home = tempfile::tempdir().expect("a folder");
    keep_settings(home.path(), "[sandbox]\nlowered = ['user']\n");
    for (language, code) in [
        ("typescript", "return 6 * 7"),
        ("python", "6 * 7"),
        ("node", "6 * 7"),
        ("bash", "echo 42"),
    ] {
        let mut inner = command(home.path());
        inner.args(["exec", "--language", language, code]);
        let narrow = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"";
        let mut outer = Command::new("unshare");
        outer.args(["--user", "--map-root-user", "sh", "-c", narrow, "sh"]);
        wrap(&mut outer, &inner);
        let output = outer.output().expect("unshare");
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert_eq!(said[0].trim(), "42", "{language}: {said:?}");
    }
}
