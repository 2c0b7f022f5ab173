//! What an earlier cell has left running, and a later one: whose end, whose output, and what is
//! stopped.

use codexec_types::Limit;

use super::*;

const PYTHON: Language = Language::Python;
const NODE: Language = Language::Node;

/// In place of a cell that a leftover is to end early: it shows that it ran to its end.
const LONG_BASH: &str = "for i in 1 2 3 4 5 6; do sleep 0.1; done; echo whole; (exit 3)";

/// Bash that writes to everything of the shell's that can be opened: what a report once was, what
/// one is now without the key, and lines for the shell to run.
const FORGE: &str = r#"
forge() {
  for pid in $$ $PPID; do
    for fd in /proc/$pid/fd/* /proc/$pid/task/*/fd/*; do
      for n in 1 2 3 4 5; do
        { printf '%s 0 0 \n0 0 %s \n1 0 %s \n' $n $n $n; printf 'exit 0\n'; } >"$fd"
      done
    done
  done 2>/dev/null
}
"#;

async fn bash(workers: &Workers) -> Session {
    Session::open(workers, Language::Bash, LIMITS).await
}

fn exited(code: i32) -> Outcome {
    Outcome::Exited { code }
}

#[test]
fn ses_8_a_process_that_bash_left_cannot_end_a_later_cell() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        // A subshell, which has every descriptor of the shell's, and a program, which opens them.
        let subshell = "(while :; do forge; for n in {3..120}; do { printf '0 0 x \\n' >&$n; } \
                        2>/dev/null; done; sleep 0.02; done) >/dev/null 2>&1 &";
        let program = "export -f forge; bash -c 'while :; do forge; sleep 0.02; done' \
                       >/dev/null 2>&1 &";
        // They begin at once, and write to this cell's own output, too.
        let reply = bash.send(&format!("{FORGE}{subshell}\n{program}\n")).await;
        assert_eq!(reply.outcome, Outcome::Returned(Json::null()));
        for _ in 0..2 {
            let reply = bash.send(LONG_BASH).await;
            assert_eq!((reply.outcome, bash.run.session_end()), (exited(3), None));
            assert!(reply.out.contains("whole\n"), "{}", reply.out.len());
        }
    });
}

#[test]
fn ses_8_a_process_that_bash_left_cannot_change_the_code_of_a_later_cell() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        // As fast as a shell can, and also by other means than writing.
        let swap = "(while :; do for n in 2 3 4; do echo 'echo swapped; builtin exit 0' \
                    >/box/cells/$n; done; done) >/dev/null 2>&1 &\n\
                    (while :; do for f in driver state 2.args 3.args 4.args; do rm -f /box/cells/$f; \
                    ln -s /dev/null /box/cells/$f; done; chmod 777 /box/cells; done) >/dev/null 2>&1 &";
        bash.prints(swap, "").await;
        for _ in 0..3 {
            let reply = bash.send(LONG_BASH).await;
            assert_eq!((reply.outcome, reply.out.as_str()), (exited(3), "whole\n"));
        }
        // Nor what a shell that ends leaves to the next one.
        bash.prints("x=5", "").await;
        assert_eq!(bash.send("builtin exit 6").await.outcome, exited(6));
        bash.prints("echo $x", "5\n").await;
    });
}

#[test]
fn ses_6_nothing_can_be_planted_where_cells_are_written() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        let plant = "cd /box/cells; for n in 2 3; do ln -s /box/work/x $n; mkfifo $n.input; \
                     mkdir $n.args; echo x >$n; mv /box/cells /box/other; rmdir /box/cells; done; \
                     ls /box/cells; cd /box/work";
        let reply = bash.send(&format!("{{ {plant}; }} 2>/dev/null; true")).await;
        assert_eq!(reply.out, "", "{reply:?}");
        bash.prints("cat; echo second; ls", "second\n").await;
    });
}

#[test]
fn ses_8_a_signal_of_a_leftover_makes_no_cell_a_success() {
    with_workers(async |workers| {
        // A shell that waits for a program does not mind an interrupt: the cell runs to its end.
        for signal in ["HUP", "INT", "USR1"] {
            let mut bash = bash(workers).await;
            let wait = "while ! [ -e /box/work/now ]; do sleep 0.01; done";
            let kill = format!("({wait}; kill -{signal} $$) >/dev/null 2>&1 &");
            bash.prints(&kill, "").await;
            let reply =
                bash.send("touch now; for i in {1..40}; do sleep 0.05; done; (exit 3)").await;
            let status = match reply.outcome {
                Outcome::Exited { code } => code,
                other => panic!("{signal}: {other:?}"),
            };
            assert!(status > 128 || signal == "INT" && status == 3, "{signal}: {status}");
        }
    });
}

#[test]
fn ses_8_a_thief_of_lines_ends_the_session_and_forges_nothing() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        // A subshell has the shell's own input among its descriptors, and reads there.
        let steal = "(for i in {1..4000}; do for n in {10..30}; do read -t 0.001 -u $n line && \
                     break 2; done; done) >/dev/null 2>&1 &";
        bash.prints(steal, "").await;
        bash.policy = policy(Limits { wall: Duration::from_secs(2), ..LIMITS });
        let reply = bash.send("echo ran; (exit 3)").await;
        let is_true = (reply.outcome == exited(3) && reply.out == "ran\n")
            || matches!(reply.outcome, Outcome::Stopped(Limit::Wall) | Outcome::Crashed(_));
        assert!(is_true, "{reply:?}");
    });
}

/// Python in another process that has the guest's socket, and says that cells have ended.
const FORGE_FRAMES: &str = r"
import json, os, struct, sys, time
fd = int(sys.argv[1])
for _ in range(40):
    for number in range(1, 9):
        for head in ({'number': number}, {'key': str(number)}, {'key': sys.argv[2]}):
            body = json.dumps({'cell_ended': {**head, 'ending': {'returned': 'forged'}}}).encode()
            os.write(fd, struct.pack('<I', len(body)) + body)
    time.sleep(0.02)
";

#[test]
fn ses_8_a_process_that_python_left_cannot_end_a_later_cell() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let forge = format!(
            "{FIND_SOCKET}\nimport subprocess\nopen('forge.py', 'w').write({FORGE_FRAMES:?})\n\
             p = subprocess.Popen([sys.executable, 'forge.py', str(fd), 'x'], pass_fds=[fd])\n\
             'begun'"
        );
        assert_eq!(Session::value(&session.send(&forge).await), r#""begun""#);
        for _ in 0..3 {
            let reply = session.send("import time; time.sleep(0.3); 'real'").await;
            assert_eq!(Session::value(&reply), r#""real""#);
        }
        // It has the descriptor, and wrote all the time.
        assert_eq!(Session::value(&session.send("p.wait()").await), "0");
    });
}

#[test]
fn ses_8_a_thread_that_python_left_cannot_end_a_later_cell() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let forge = format!(
            r"{FIND_SOCKET}
import json, struct, threading, time
def forge():
    for _ in range(20):
        for number in range(1, 9):
            body = json.dumps({{'cell_ended': {{'key': str(number), 'ending': {{'returned': 'forged'}}}}}}).encode()
            os.write(fd, struct.pack('<I', len(body)) + body)
        time.sleep(0.02)
t = threading.Thread(target=forge)
t.start()
'begun'"
        );
        assert_eq!(Session::value(&session.send(&forge).await), r#""begun""#);
        for _ in 0..2 {
            let reply = session.send("import time; time.sleep(0.1); 'real'").await;
            assert_eq!(Session::value(&reply), r#""real""#);
        }
        assert_eq!(Session::value(&session.send("t.join(); 'over'").await), r#""over""#);
    });
}

#[test]
fn ses_8_what_node_left_cannot_end_a_later_cell() {
    with_workers(async |workers| {
        let mut node = Session::open(workers, NODE, LIMITS).await;
        let forge = format!(
            "const fs = require('fs'), cp = require('child_process');\n\
             fs.writeFileSync('forge.py', {FORGE_FRAMES:?});\n\
             var p = cp.spawn('python3', ['forge.py', '3', 'x'], {{stdio: ['ignore', 'ignore', 'ignore', 3]}});\n\
             var gone = new Promise(r => p.on('exit', r));\n\
             const forged = (key) => {{ const b = Buffer.from(JSON.stringify({{cell_ended: {{key, ending: {{returned: 'forged'}}}}}}));\n\
               const h = Buffer.alloc(4); h.writeUInt32LE(b.length); fs.writeSync(3, Buffer.concat([h, b])); }};\n\
             let turns = 0; const timer = setInterval(() => {{ for (let n = 0; n < 9; n++) forged(String(n)); if (++turns > 20) clearInterval(timer); }}, 20);\n\
             'begun'"
        );
        assert_eq!(Session::value(&node.send(&forge).await), r#""begun""#);
        for _ in 0..3 {
            let code = "await new Promise(r => setTimeout(r, 300)); 'real'";
            let reply = node.send(code).await;
            assert_eq!(Session::value(&reply), r#""real""#);
        }
        assert_eq!(Session::value(&node.send("await gone").await), "0");
    });
}

const MEANWHILE: &str = "[codexec] written meanwhile by what earlier code left running:\n";

#[test]
fn ses_10_what_a_process_of_an_earlier_cell_writes_is_marked() {
    with_workers(async |workers| {
        let wait = "while ! [ -e now ]; do sleep 0.01; done; echo LATE; echo BAD >&2; touch done";
        let wait_done = "touch now; while ! [ -e done ]; do sleep 0.01; done; echo mine";
        let python = |code: &str| {
            format!("import subprocess; p = subprocess.Popen(['bash', '-c', {code:?}])")
        };
        let python_done =
            format!("import subprocess; subprocess.run(['bash', '-c', {wait_done:?}]); 1");
        for (language, left, later) in [
            (Language::Bash, format!("({wait}) &"), wait_done.to_owned()),
            (Language::Bash, format!("bash -c '{wait}' &"), wait_done.to_owned()),
            (PYTHON, python(wait), python_done),
        ] {
            let mut session = Session::open(workers, language, LIMITS).await;
            assert_eq!(session.send(&left).await.out, "", "{left}");
            let reply = session.send(&later).await;
            assert_eq!(reply.out, format!("mine\n{MEANWHILE}LATE\n"), "{left}");
            assert_eq!(reply.err, format!("{MEANWHILE}BAD\n"), "{left}");
            let reply = session.send("true").await;
            assert_eq!(reply.out, "", "{left}");
        }
    });
}

#[test]
fn ses_10_what_a_thread_task_or_timer_of_an_earlier_cell_writes_is_marked() {
    with_workers(async |workers| {
        let thread = r"
import asyncio, threading, time
go, done = threading.Event(), threading.Event()
def run():
    go.wait(); print('LATE'); done.set()
threading.Thread(target=run).start()
async def task():
    while not go.is_set(): await asyncio.sleep(0.01)
    print('TASK')
t = asyncio.get_event_loop().create_task(task())
None";
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        assert_eq!(session.send(thread).await.out, "");
        let reply = session.send("go.set(); done.wait(); await t; print('mine')").await;
        assert!(reply.out.starts_with("mine\n[codexec] written meanwhile"), "{reply:?}");
        assert!(reply.out.contains("LATE\n") && reply.out.contains("TASK\n"), "{reply:?}");
        // A thread that is this cell's own writes as this cell.
        let own = "t = threading.Thread(target=print, args=['own']); t.start(); t.join()\n\
                   await asyncio.to_thread(print, 'and this')";
        assert_eq!(session.send(own).await.out, "own\nand this\n");

        let mut node = Session::open(workers, NODE, LIMITS).await;
        let timer = "var go, done = new Promise(r => { const t = setInterval(() => { if (!go) return; \
                     clearInterval(t); console.log('LATE'); console.error('BAD'); r(); }, 5); }); 1";
        assert_eq!(node.send(timer).await.out, "");
        let reply = node.send("go = true; await done; console.log('mine')").await;
        assert_eq!(reply.out, format!("mine\n{MEANWHILE}LATE\n"));
        assert_eq!(reply.err, format!("{MEANWHILE}BAD\n"));
    });
}

/// THREAT[SES-9]: `code` is stopped while it waits; nothing behind that may happen.
async fn stops(session: &mut Session, code: &str) {
    let reply = session.send_long(code).await;
    assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall), "{code}: {reply:?}");
    assert_eq!(session.run.session_end(), None, "{code}");
}

#[test]
fn ses_9_not_one_more_command_of_a_stopped_cell_starts_in_bash() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        // A shell that is not stopped first goes on while the rest is killed, in about every other try.
        let many = "sleep 30 & first=$!; for i in {1..60}; do sleep 30 & done; wait $first; : >no";
        // Programs that ignore the interrupt have to be killed, and a shell goes on behind those.
        let deaf = "bash -c 'trap \"\" INT TERM; sleep 30 & wait; while :; do sleep 1; done'";
        for (n, code) in [
            format!("{deaf}; touch no"),
            format!("({deaf}; touch no); touch no"),
            format!("{deaf} | cat; echo x >no"),
            format!("x=$({deaf}; touch no); touch no"),
            format!("{deaf} & wait; touch no"),
            format!("f() {{ {deaf}; touch no; }}; f; f || touch no"),
            format!("set -e; {deaf}; touch no"),
            format!("set +e; trap 'touch no' ERR; {deaf} || touch no"),
            "trap 'touch no' INT; sleep 30; touch no".to_owned(),
            "trap '' INT; sleep 30; touch no".to_owned(),
            "sleep 30; touch no".to_owned(),
        ]
        .into_iter()
        .chain(std::iter::repeat_n(many.to_owned(), 8))
        .enumerate()
        {
            stops(&mut bash, &code).await;
            bash.prints(
                &format!("ls; echo {n}; pgrep -r S,R,D,T -c 'sleep|bash'"),
                &format!("{n}\n1\n"),
            )
            .await;
        }
    });
}

#[test]
fn ses_9_a_stopped_cell_races_with_its_own_end_and_loses_nothing() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        bash.prints("n=0; echo 0 >count", "").await;
        // The stop comes at any moment of a busy cell: between commands, in them, before one.
        for turn in 1..40_u64 {
            let code = "while :; do n=$((n + 1)); (:); /bin/true; echo $n >count; done";
            let with = With { wall: Duration::from_millis(20 + turn), ..With::default() };
            let begun = std::time::Instant::now();
            let reply = bash.send_with(code, with).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall), "{reply:?}");
            assert_eq!(bash.run.session_end(), None, "{turn} {:?} {reply:?}", begun.elapsed());
            let seen =
                bash.send("cat count; pgrep -r S,R,D,T -c true; sleep 0.01; cat count").await.out;
            let lines: Vec<&str> = seen.lines().collect();
            assert_eq!(lines.first(), lines.last(), "{seen}");
            assert_eq!(lines.get(1), Some(&"0"), "{seen}");
        }
    });
}

#[test]
fn ses_9_what_a_stopped_cell_has_started_ends_with_it() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let left = "import os, subprocess, time; p = subprocess.Popen(['sleep', '100']); 1";
        assert_eq!(Session::value(&session.send(left).await), "1");
        session.send("time.sleep(0.05)").await;
        for code in [
            "subprocess.Popen(['bash', '-c', 'sleep 1; touch no'])\ntime.sleep(30)",
            "subprocess.run(['bash', '-c', 'trap \"\" INT; sleep 30; touch no'])\nopen('no', 'w')",
            "subprocess.Popen('(sleep 1; touch no) &', shell=True).wait(); time.sleep(30)",
        ] {
            stops(&mut session, code).await;
            let look = "(os.listdir(), subprocess.run(['pgrep', '-r', 'S,R,D,T', '-c', 'sleep|bash'], \
                        capture_output=True, text=True).stdout, p.poll())";
            assert_eq!(Session::value(&session.send(look).await), r#"[[],"1\n",null]"#, "{code}");
        }
        // What cannot be interrupted ends the session, at once.
        let reply = session.send_long("os.system('sleep 30; touch no'); open('no', 'w')").await;
        assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall));
        assert!(session.run.session_end().is_some());
        let changes = session.run.collect_changes(session.keep.path().join("end")).await;
        assert!(changes.is_empty(), "{changes:?}");

        let mut node = Session::open(workers, NODE, LIMITS).await;
        assert_eq!(Session::value(&node.send("var cp = require('child_process'); 1").await), "1");
        for code in [
            "cp.spawn('bash', ['-c', 'sleep 1; touch no']); await new Promise(() => setTimeout(() => {}, 30000))",
            "try { cp.execSync('sleep 30; touch no') } catch {} ; cp.execSync('touch no')",
        ] {
            stops(&mut node, code).await;
            let look = "[require('fs').readdirSync('.'), cp.spawnSync('pgrep', ['-r', 'S,R,D,T', '-c', 'sleep']).stdout.toString()]";
            assert_eq!(Session::value(&node.send(look).await), r#"[[],"0\n"]"#, "{code}");
        }
    });
}

#[test]
fn ses_9_a_shell_that_cannot_be_brought_back_ends_rather_than_going_on() {
    with_workers(async |workers| {
        // By default the stop signal kills a shell; one that ignores the signal would go on.
        for action in ["-", "''"] {
            let mut bash = bash(workers).await;
            let code = format!("trap {action} RTMAX; sleep 30; : >no");
            let reply = bash.send_long(&code).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall), "{code}");
            assert!(bash.run.session_end().is_some(), "{code}");
            let changes = bash.run.collect_changes(bash.keep.path().join("end")).await;
            assert!(changes.is_empty(), "{code}: {changes:?}");
        }
    });
}
