use codexec_types::{Crash, Limit};

use super::*;

const JS: Language = Language::JavaScript;
const PYTHON: Language = Language::Python;

#[test]
fn a_process_that_ends_ends_the_session() {
    with_workers(async |workers| {
        for (code, outcome) in [
            ("import os\nprint('last', flush=True)\nos._exit(3)", Outcome::Exited { code: 3 }),
            (
                "import os\nprint('last', flush=True)\nos.kill(os.getpid(), 9)",
                Outcome::Crashed(Crash::Killed { signal: 9 }),
            ),
        ] {
            let mut session = Session::open(workers, PYTHON, LIMITS).await;
            let reply = session.send(code).await;
            assert_eq!((reply.out.as_str(), &reply.outcome), ("last\n", &outcome));
            assert_eq!(session.run.is_over(), Some(Over::Exited));
            assert_eq!(session.run.pid(), None);
        }
    });
}

#[test]
fn sys_exit_ends_the_cell_and_not_the_session() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let reply = session.send("kept = 1\nimport sys\nsys.exit(3)").await;
        assert_eq!(reply.outcome, Outcome::Exited { code: 3 });
        assert_eq!(Session::value(&session.send("kept").await), "1");
    });
}

#[test]
fn memory_without_end_ends_the_session() {
    with_workers(async |workers| {
        let limits = Limits { memory_bytes: 64 << 20, ..LIMITS };
        for (language, code) in [
            (JS, "let a = []; for (;;) a.push('x'.repeat(1 << 20) + a.length)"),
            (PYTHON, "a = []\nwhile True: a.append(bytearray(1 << 20))"),
        ] {
            let mut session = Session::open(workers, language, limits).await;
            let reply = session.send(code).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Memory), "{language}");
            assert_eq!(session.run.is_over(), Some(Over::Stopped(Limit::Memory)), "{language}");
        }
    });
}

#[test]
fn an_idle_session_is_watched() {
    with_workers(async |workers| {
        let limits = Limits { memory_bytes: 64 << 20, cpu: Duration::from_millis(300), ..LIMITS };
        let later = |what: &str| {
            format!(
                "{FIND_SOCKET}\nimport threading, time\ndef late():\n  time.sleep(0.1)\n  a = []\n  \
                 {what}\nthreading.Thread(target=late, daemon=True).start()"
            )
        };
        for (what, over) in [
            ("os._exit(0)", Over::Exited),
            (
                "while True: a.append(bytearray(1 << 20)); time.sleep(0.001)",
                Over::Stopped(Limit::Memory),
            ),
            ("while True: pass", Over::Stopped(Limit::Cpu)),
            ("os.write(fd, b'nonsense' * 9)", Over::BadFrame),
        ] {
            let mut session = Session::open(workers, PYTHON, limits).await;
            session.send(&later(what)).await;
            assert_eq!(session.idle().await, over, "{what}");
            assert_eq!(session.run.is_over(), Some(over));
        }
    });
}

#[test]
fn a_closed_session_is_gone_and_its_slot_is_used_again() {
    with_workers(async |workers| {
        for language in [JS, PYTHON] {
            let mut session = Session::open(workers, language, LIMITS).await;
            session.send("1").await;
            let pid = session.run.pid().expect("a process");
            session.run.close().await;
            assert_eq!(session.run.is_over(), Some(Over::Closed));
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
            let cell = admitted(&session.policy, language, "1");
            assert_eq!(session.run.send(&cell, 2), Err(Over::Closed));
            assert_eq!(session.idle().await, Over::Closed);
        }
    });
}

#[test]
fn tools_are_for_cells() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let code = "import threading\ngo, seen = threading.Event(), []\ndef late():\n  go.wait()\n  \
        try: call_mcp_tool('a.b', {}).result()\n  except Exception as e: seen.append(str(e))\n  print('done', flush=True)\n\
        threading.Thread(target=late, daemon=True).start()\n\
        def trigger():\n  import time\n  time.sleep(0.05)\n  go.set()\n\
        threading.Thread(target=trigger, daemon=True).start()";
        session.send(code).await;
        let _ = tokio::time::timeout(Duration::from_millis(500), session.run.idle()).await;
        let reply = session.send("while not seen: pass\nseen[0]").await;
        assert_eq!(
            Session::value(&reply),
            r#""tools can be called while a cell runs, and none does""#
        );
    });
}
