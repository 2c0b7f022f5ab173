//! What programs see of the machine, and what they do not: Python, Bash and Node in the built
//! binary.

use serde_json::{Value, json};

use crate::support::{Client, ToolText};

/// A name that only the server's environment has.
const SECRET: &str = "kept-from-guests-4711";

fn client(settings: &str) -> Client {
    Client::with(&json!({}), |command| {
        let home = command.get_envs().find(|(name, _)| *name == "HOME");
        let home = home.and_then(|(_, value)| value).expect("a home").to_owned();
        let path = std::path::Path::new(&home).join("settings.toml");
        std::fs::write(&path, settings).expect("written");
        command.arg("--config").arg(path).env("API_KEY", SECRET);
    })
}

fn run(client: &mut Client, language: &str, code: &str) -> ToolText {
    client.call("execute_code", &json!({"language": language, "code": code}))
}

#[track_caller]
fn check(language: &str, code: &str, expected: &str) {
    assert_eq!(run(&mut client(""), language, code).fine(), expected);
}

/// A Python program that makes these system calls and says which errors they met.
fn calls(calls: &str) -> String {
    format!(
        "import ctypes, errno\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         def call(name, *numbers):\n    \
             ctypes.set_errno(0)\n    \
             worked = libc.syscall(*[ctypes.c_long(n) for n in numbers]) >= 0\n    \
             return 'WORKED' if worked else errno.errorcode[ctypes.get_errno()]\n\
         {{name: call(name, *numbers) for name, *numbers in [{calls}]}}"
    )
}

#[test]
fn esc_2_programs_see_only_their_room() {
    let mut client = client("");
    let canary = client.home.path().join("canary");
    std::fs::write(&canary, SECRET).expect("written");
    let code = format!(
        "import os\n\
         def look(path):\n    \
             try: return len(os.listdir(path)) if os.path.isdir(path) else len(open(path).read())\n    \
             except OSError as error: return type(error).__name__\n\
         [look(path) for path in ({canary:?}, '/sys', '/var/lib', '/etc/shadow', '/boot', '/run')]"
    );
    let said = run(&mut client, "python", &code).fine();
    assert_eq!(said, format!("[{}]", ["\"FileNotFoundError\""; 6].join(",")));
    let write = "for f in /x /usr/x /etc/x /opt/x /dev/x /proc/x /box/../x; do \
                 (echo > $f) 2>/dev/null && echo wrote $f; done; echo over";
    assert_eq!(run(&mut client, "bash", write).fine(), "over");
}

#[test]
fn esc_3_programs_see_no_process_but_their_own() {
    let code = "cd /proc; echo $(tr '\\0' ' ' < 1/cmdline); kill -9 1 2>&1; echo $?";
    let expected =
        "codexec zygote-programs\n/box/main: line 1: kill: (1) - Operation not permitted\n1";
    // A shell and its first process; Landlock keeps one from signalling the other.
    check("bash", code, expected);
    let memory =
        "try:\n    open('/proc/1/mem', 'rb').close()\nexcept OSError as e:\n    print(e.errno)";
    check("python", memory, "13");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn esc_4_programs_cannot_make_dangerous_calls() {
    let list = "('unshare', 272, 0x10000000), ('setns', 308, 0, 0), ('mount', 165, 0, 0, 0, 0, 0), \
        ('ptrace', 101, 0, 0, 0, 0), ('bpf', 321, 0, 0, 0), ('keyctl', 250, 0, 0), \
        ('perf', 298, 0, 0, 0, 0, 0), ('userfaultfd', 323, 0), ('memfd', 319, 0, 0), \
        ('process_vm_readv', 310, 1, 0, 0, 0, 0, 0), ('pidfd_getfd', 438, 0, 0, 0), \
        ('chroot', 161, 0), ('pivot_root', 155, 0, 0), ('open_tree', 428, 0, 0, 0), \
        ('fsopen', 430, 0, 0), ('clone(user)', 56, 0x10000000, 0, 0, 0, 0), ('setuid', 105, 0), \
        ('shmget', 29, 1, 4096, 0o1666), ('personality', 135, 0), ('seccomp', 317, 0, 0, 0), \
        ('clone3', 435, 0, 0), ('io_uring', 425, 1, 0)";
    let said = run(&mut client(""), "python", &calls(list)).fine();
    let said: Value = serde_json::from_str(&said).expect("JSON");
    for (name, met) in said.as_object().expect("an object") {
        let expected = if ["clone3", "io_uring", "memfd"].contains(&name.as_str()) {
            "ENOSYS"
        } else {
            "EPERM"
        };
        assert_eq!(met, expected, "{name}");
    }
}

#[test]
fn esc_5_programs_have_no_privileges() {
    let code =
        "grep -E '^(Cap...|NoNewPrivs|Seccomp|Groups):' /proc/self/status | tr -d '\\t '; id -u";
    let expected = "Groups:1000\nCapInh:0000000000000000\nCapPrm:0000000000000000\n\
        CapEff:0000000000000000\nCapBnd:0000000000000000\nCapAmb:0000000000000000\n\
        NoNewPrivs:1\nSeccomp:2\n1000";
    // As root the guest's supplementary groups are gone; a plain user's cannot be dropped.
    let said = run(&mut client(""), "bash", code).fine();
    let without_groups = |text: &str| text.split_once('\n').map(|(_, rest)| rest.to_owned());
    assert_eq!(without_groups(&said), without_groups(expected));
    let python = "sum(line.startswith('Cap') and line.endswith('\\t0000000000000000\\n') \
                  for line in open('/proc/self/status'))";
    check("python", python, "5");
}

#[test]
fn esc_6_programs_have_no_terminal() {
    let code = "tty; (exec 9</dev/tty) 2>/dev/null || echo none; echo $(ls /dev)";
    check(
        "bash",
        code,
        "not a tty\nnone\nfd full null random shm stderr stdin stdout urandom zero",
    );
    let code = "import fcntl\ntry:\n    fcntl.ioctl(0, 0x5412, b'x')\nexcept OSError as e:\n    print(e.errno)";
    check("python", code, "1");
}

#[test]
fn net_1_programs_have_no_network() {
    let code = "import socket\n\
        def make(family):\n    \
            try: socket.socket(family).close(); return 'made'\n    \
            except OSError as error: return error.errno\n\
        [make(family) for family in (2, 10, 16, 17, 40, 1)]";
    check("python", code, "[1,1,1,1,1,\"made\"]");
    check("bash", "(echo > /dev/tcp/127.0.0.1/80) 2>/dev/null || echo none", "none");
    let code = "import net from 'node:net';\n\
        await new Promise((done) => net.connect(80, '127.0.0.1').on('error', (e) => done(e.code)));";
    check("node", code, "\"EPERM\"".trim_matches('"'));
}

/// THREAT[LEAK-1]
#[test]
fn leak_1_programs_find_nothing_of_the_one_before() {
    let write = "for d in /tmp /box /box/work /box/home /dev/shm /var/tmp; do echo x > $d/left; done; \
                 setsid sleep 100 & echo done";
    let look = "find /tmp /box /dev/shm/ /var/tmp/ -name left 2>/dev/null; cd /proc; echo [0-9]*";
    let mut client = client("[workers]\nmax = 1\nwarm = 1\n");
    for _ in 0..3 {
        assert!(run(&mut client, "bash", write).fine().starts_with("done"));
        // Process 1 and the shell itself.
        assert_eq!(run(&mut client, "bash", look).fine(), "1 2");
    }
}

/// THREAT[LEAK-2]
#[test]
fn leak_2_no_key_of_the_servers_reaches_a_program() {
    let mut client = client("[environment]\nGIVEN = \"yes\"\n");
    let code = "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env; \
                ls -l /proc/self/fd /proc/$$/fd";
    let said = run(&mut client, "bash", code).fine();
    assert!(!said.contains(SECRET) && !said.contains("API_KEY"), "{said}");
    let names = "env | cut -d= -f1 | sort | tr '\\n' ' '";
    assert_eq!(
        run(&mut client, "bash", names).fine().trim(),
        "GIVEN HOME LANG PATH PWD SHLVL TERM _"
    );
    let code = "import os\n\
        print(sorted(os.environ))\n\
        sorted(os.readlink('/proc/self/fd/' + fd).split(':')[0] for fd in os.listdir('/proc/self/fd') \
        if os.path.exists('/proc/self/fd/' + fd))";
    let said = run(&mut client, "python", code).fine();
    let expected = "['GIVEN', 'HOME', 'LANG', 'PATH', 'TERM']\n[result]\n\
        [\"/dev/null\",\"pipe\",\"pipe\",\"socket\"]";
    assert_eq!(said, expected);
    let code = "import fs from 'node:fs';\n\
        const all = fs.readFileSync('/proc/self/environ', 'utf8') + fs.readFileSync('/proc/self/cmdline', 'utf8');\n\
        [Object.keys(process.env).sort().join(' '), all.includes('API_KEY')]";
    assert_eq!(run(&mut client, "node", code).fine(), "[\"GIVEN HOME LANG PATH TERM\",false]");
}

/// Success is what the host sees, whatever a frame says.
#[test]
fn brg_1_a_forged_success_is_a_failure() {
    let code = "import os, struct\n\
        said = b'{\"returned\":\"forged\"}'\n\
        for fd in range(3, 64):\n    \
            try: os.write(fd, struct.pack('<I', len(said)) + said)\n    \
            except OSError: pass\n\
        os._exit(3)";
    let said = run(&mut client(""), "python", code).failed();
    assert_eq!(said, "NONZERO_EXIT: the program ended with exit code 3");
}

/// THREAT[RES-7]: descriptors that a guest leaves on their way are counted for all guests.
#[test]
fn res_7_a_guest_with_descriptors_in_flight_stops_no_other() {
    let mut client = client("");
    let code = "import array, os, socket, time\n\
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n\
        sent = 0\n\
        try:\n    \
            while sent < 100:\n        \
                a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 250))], socket.MSG_DONTWAIT)\n        \
                sent += 1\n\
        except OSError as error:\n    \
            print(error.errno)\n\
        progress('in flight')\n\
        time.sleep(6)";
    let attack = client.send(
        "tools/call",
        &json!({
            "name": "execute_code",
            "arguments": {"language": "python", "code": code},
            "_meta": {"progressToken": "attack"},
        }),
    );
    while client.next_message()["params"]["message"] != "in flight" {}
    for _ in 0..5 {
        assert_eq!(run(&mut client, "python", "1 + 1").fine(), "2");
        assert_eq!(run(&mut client, "bash", "mcp tools").fine(), "[]");
        assert_eq!(run(&mut client, "node", "1 + 1").fine(), "2");
    }
    let said = client.wait_call(attack);
    // It got as far as the kernel lets it: ETOOMANYREFS.
    assert_eq!(said.fine(), "109");
}
