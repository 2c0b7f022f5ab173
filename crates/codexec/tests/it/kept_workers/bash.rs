//! Bash in a session.

use codexec_types::Limit;

use super::*;

async fn bash(workers: &Workers) -> Session {
    Session::open(workers, Language::Bash, LIMITS).await
}

fn exited(code: i32) -> Outcome {
    Outcome::Exited { code }
}

#[test]
fn what_a_cell_leaves_is_there_in_the_next() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        let code = "x=5; declare -A m=([a]=1); f() { echo f $x; }; alias hi='echo hi'; \
                shopt -s nullglob; mkdir -p d; cd d; exec 5>log; echo one >&5";
        bash.prints(code, "").await;
        bash.prints(
            "f; hi; echo ${m[a]} nothing*; pwd; echo two >&5; cat log",
            "f 5\nhi\n1\n/box/work/d\none\ntwo\n",
        )
        .await;
        bash.prints("x=6; f", "f 6\n").await;
    });
}

#[test]
fn every_cell_has_its_own_input_and_arguments() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        let with =
            With { input: Some("[1, 2]"), args: &["a b", "it's $HOME", ""], wall: LIMITS.wall };
        let reply = bash.send_with("cat; echo; echo $# \"$1\" \"$2\"; shift 3", with).await;
        assert_eq!(reply.out, "[1, 2]\n3 a b it's $HOME\n");
        bash.prints("cat; echo $# \"$@\"", "0\n").await;
    });
}

#[test]
fn the_status_of_the_last_command_is_the_cells() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        assert_eq!(bash.send("echo a; false").await.outcome, exited(1));
        assert_eq!(bash.send("return 9; echo no").await.outcome, exited(9));
        assert_eq!(bash.send("(exit 4)").await.outcome, exited(4));
        let reply = bash.send("echo one\nif ; then").await;
        assert_eq!(reply.outcome, exited(2));
        assert!(reply.err.contains("/box/cells/4: line 2: syntax error"), "{}", reply.err);
        bash.prints("true", "").await;
    });
}

#[test]
fn exit_ends_the_cell_and_not_the_session() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        bash.prints("x=5; sleep 100 &", "").await;
        for (code, status) in [
            ("exit 3; echo no", 3),
            ("g() { for i in 1 2; do exit 7; done; }; while :; do g; echo no; done; echo no", 7),
            ("set -e; h() { false; echo no; }; h; echo no", 1),
            ("set -e; false | true; grep -q nothing /etc/passwd; echo no", 1),
            // Neither of these can be held up in the shell: another one goes on from what it knew.
            ("set -euo pipefail; echo \"$undefined\" 2>/dev/null; echo no", 1),
            ("builtin exit 6; echo no", 6),
            ("trap 'echo mine >/dev/null' ERR; set -e; false; echo no", 1),
        ] {
            let reply = bash.send(code).await;
            assert_eq!((reply.outcome, reply.out.as_str()), (exited(status), ""), "{code}");
            assert_eq!(bash.run.session_end(), None, "{code}");
            bash.prints("set +eu; echo $x", "5\n").await;
        }
        bash.prints("pgrep -x sleep >/dev/null && echo alive", "alive\n").await;
    });
}

#[test]
fn a_shell_that_is_killed_ends_the_session() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        let reply = bash.send("kill -9 $$").await;
        assert!(matches!(reply.outcome, Outcome::Crashed(_)), "{:?}", reply.outcome);
        assert!(bash.run.session_end().is_some());
    });
}

#[test]
fn ses_5_a_cell_that_is_too_long_is_stopped_and_the_state_stays() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        bash.prints("x=5; sleep 200 & job=$!", "").await;
        for code in [
            "while :; do :; done; echo no",
            "sleep 30; echo no",
            "find / 2>/dev/null | sort | sleep 30; echo no",
            "k() { while :; do sleep 5; done; }; k; echo no",
            "y=$(sleep 30); echo no",
            "read z < <(sleep 30); echo no",
            "wait; echo no",
            "for ((i = 0; ; i++)); do echo $i; done >/dev/null",
            "set -e; while true; do true; done",
            "set +e; python3 -c 'import time; time.sleep(30)'; sleep 30; echo no",
            "python3 -c 'while True:\n try:\n  while True: pass\n except BaseException: pass'; sleep 30; echo no",
        ] {
            let reply = bash.send_long(code).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall), "{code}");
            assert_eq!((reply.out.as_str(), bash.run.session_end()), ("", None), "{code}");
            bash.prints("echo $x", "5\n").await;
        }
        let running = "kill -0 $job && ps -e -o comm= | grep -cE '^(sleep|python3|find|sort)'";
        bash.prints(running, "1\n").await;
    });
}

#[test]
fn ses_5_a_cell_that_cannot_be_stopped_takes_its_session_with_it() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        let reply = bash.send_long("trap '' RTMAX; while :; do :; done").await;
        assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall));
        assert_eq!(bash.run.session_end().map(SessionEnd::code), Some("timeout"));
    });
}

#[test]
fn ses_4_reports_that_a_cell_forges_end_only_itself() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        // Whatever it finds open, it writes to: garbage, and the end of cells that do not run.
        let forge = "for fd in /proc/$$/fd/*; do n=${fd##*/}; (( n > 9 )) && \
                 { printf '2 0 0 \\n3 0 0 \\nx\\n%9999s\\n' x >&$n; } 2>/dev/null; done; echo forged";
        let reply = bash.send(forge).await;
        assert!(reply.out.contains("forged"), "{reply:?}");
        bash.prints("sleep 0.2; echo second", "second\n").await;
        bash.prints("sleep 0.2; echo third", "third\n").await;
    });
}

#[test]
fn tools_can_be_called_in_every_cell() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        bash.prints("mcp github get --json '{}'", "1\n").await;
        let many = "for i in 1 2 3; do mcp github get --json '{}' & done | cat";
        bash.prints(many, "1\n1\n1\n").await;
        bash.prints("mcp github get --json '{}'", "1\n").await;
    });
}

#[test]
fn a_full_disk_can_be_emptied() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        let reply = bash.send("cat /dev/zero > full; echo over").await;
        assert_eq!(reply.out, "over\n");
        bash.prints("rm full; echo it\\'s empty", "it's empty\n").await;
        bash.prints("echo text > file; cat file", "text\n").await;
    });
}

#[test]
fn jobs_outlive_their_cell() {
    with_workers(async |workers| {
        let mut bash = bash(workers).await;
        bash.prints("sleep 100 & jobs | grep -c Running", "1\n").await;
        bash.prints("jobs | grep -c Running; kill %1; wait %1; echo $?", "1\n143\n").await;
    });
}

#[test]
fn a_single_execution_has_its_arguments_too() {
    with_workers(async |workers| {
        for (language, code) in [
            (Language::Bash, "echo \"$#:$1:$2\""),
            (
                Language::Node,
                "console.log([process.argv.length - 2, ...process.argv.slice(2)].join(':'))",
            ),
        ] {
            let args = vec!["--help".to_owned(), "it's $HOME".to_owned()];
            let request = AdmissionRequest { args, ..request(language, code) };
            let admitted = policy(LIMITS).admit(request, &[], None).expect("admitted");
            let mut run = workers.start(&admitted, Vec::new()).await.expect("a run");
            let mut out = String::new();
            loop {
                match tokio::time::timeout(PATIENCE, run.next()).await.expect("an event") {
                    RunEvent::Output { text, .. } => out.push_str(&text),
                    RunEvent::Ended(_) => break,
                    RunEvent::Ask { .. } | RunEvent::Image(_) | RunEvent::Progress(_) => {}
                }
            }
            assert_eq!(out, "2:--help:it's $HOME\n", "{language:?}");
        }
    });
}
