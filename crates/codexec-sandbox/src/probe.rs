//! A guest that tries to escape. `doctor` and the tests run it in a real worker, because only an
//! attempt proves that the sandbox forbids something.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};

use crate::sys;

/// One escape attempt and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscapeAttempt {
    pub what: String,
    /// The error of the attempt; `None` if the attempt succeeded, which is a hole in the sandbox.
    pub blocked_by: Option<String>,
}

/// Makes all attempts and sends their results to the host as one line of JSON.
pub fn probe_guest(mut socket: UnixStream) {
    let attempts: Vec<EscapeAttempt> = try_files().into_iter().chain(try_calls()).collect();
    if let Ok(mut line) = serde_json::to_vec(&attempts) {
        line.push(b'\n');
        // Fails only if the host is gone.
        let _ = socket.write_all(&line);
    }
}

fn try_files() -> Vec<EscapeAttempt> {
    let read = |path: &str| EscapeAttempt {
        what: format!("read {path}"),
        blocked_by: fs::read(path).err().map(|error| error.to_string()),
    };
    let mut attempts: Vec<EscapeAttempt> =
        ["/etc/passwd", "/proc/self/environ", "/proc/1/cmdline", "/sys/kernel/mm", "/dev/null"]
            .map(read)
            .to_vec();
    attempts.push(EscapeAttempt {
        what: "list /".to_owned(),
        blocked_by: fs::read_dir("/").err().map(|error| error.to_string()),
    });
    attempts.push(EscapeAttempt {
        what: "write /tmp/x".to_owned(),
        blocked_by: fs::write("/tmp/x", "x").err().map(|error| error.to_string()),
    });
    attempts
}

fn try_calls() -> Vec<EscapeAttempt> {
    use libc::*;
    let new_user = c_long::from(CLONE_NEWUSER);
    let exec = c_long::from(PROT_READ | PROT_EXEC);
    let private = c_long::from(MAP_PRIVATE | MAP_ANONYMOUS);
    let inet = [c_long::from(AF_INET), c_long::from(SOCK_STREAM), 0, 0];
    let vsock = [c_long::from(AF_VSOCK), c_long::from(SOCK_STREAM), 0, 0];
    let unix = [c_long::from(AF_UNIX), c_long::from(SOCK_STREAM), 0, 0];
    [
        ("socket(AF_INET)", SYS_socket, inet),
        ("socket(AF_UNIX)", SYS_socket, unix),
        ("socket(AF_VSOCK)", SYS_socket, vsock),
        ("unshare(user)", SYS_unshare, [new_user, 0, 0, 0]),
        ("clone(user)", SYS_clone, [new_user, 0, 0, 0]),
        ("clone3", SYS_clone3, [0, 0, 0, 0]),
        ("fork", SYS_clone, [c_long::from(SIGCHLD), 0, 0, 0]),
        ("execve", SYS_execve, [0, 0, 0, 0]),
        ("ptrace", SYS_ptrace, [0, 0, 0, 0]),
        ("process_vm_readv", SYS_process_vm_readv, [1, 0, 0, 0]),
        ("mount", SYS_mount, [0, 0, 0, 0]),
        ("pivot_root", SYS_pivot_root, [0, 0, 0, 0]),
        ("setns", SYS_setns, [0, 0, 0, 0]),
        ("bpf", SYS_bpf, [0, 0, 0, 0]),
        ("io_uring_setup", SYS_io_uring_setup, [1, 0, 0, 0]),
        ("keyctl", SYS_keyctl, [0, 0, 0, 0]),
        ("perf_event_open", SYS_perf_event_open, [0, 0, 0, 0]),
        ("userfaultfd", SYS_userfaultfd, [0, 0, 0, 0]),
        ("kill(-1)", SYS_kill, [-1, 0, 0, 0]),
        ("pidfd_open(1)", SYS_pidfd_open, [1, 0, 0, 0]),
        ("memfd_create", SYS_memfd_create, [0, 0, 0, 0]),
        ("setuid(0)", SYS_setuid, [0, 0, 0, 0]),
        ("chroot", SYS_chroot, [0, 0, 0, 0]),
        ("prctl", SYS_prctl, [c_long::from(PR_GET_DUMPABLE), 0, 0, 0]),
        ("mmap(PROT_EXEC)", SYS_mmap, [0, 4096, exec, private]),
    ]
    .map(|(what, number, arguments)| EscapeAttempt {
        what: what.to_owned(),
        blocked_by: sys::attempt(number, arguments).map(|errno| errno.to_string()),
    })
    .to_vec()
}
