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
            assert_eq!(session.run.session_end(), Some(SessionEnd::Exited));
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
            assert_eq!(
                session.run.session_end(),
                Some(SessionEnd::Stopped(Limit::Memory)),
                "{language}"
            );
        }
    });
}

#[test]
fn an_idle_session_is_watched() {
    with_workers(async |workers| {
        let limits = Limits { memory_bytes: 64 << 20, cpu: Duration::from_millis(300), ..LIMITS };
        let frames = "import struct\nframe = lambda text: struct.pack('<I', len(text)) + text\n";
        for (act, over) in [
            ("os._exit(0)", SessionEnd::Exited),
            ("a.append(b'x' * (150 << 20))", SessionEnd::Stopped(Limit::Memory)),
            ("[None for _ in iter(int, 1) if None]", SessionEnd::Stopped(Limit::Cpu)),
            ("os.write(fd, b'nonsense' * 9)", SessionEnd::BadFrame),
            // No limit on words that nobody asked for is without an end.
            (r#"os.write(fd, frame(b'{"progress":"x"}') * 10001)"#, SessionEnd::BadFrame),
            (r#"os.write(fd, frame(b'{"returned":1}'))"#, SessionEnd::BadFrame),
        ] {
            let mut session = Session::open(workers, PYTHON, limits).await;
            let code =
                format!("{FIND_SOCKET}{WAIT_FOR_GO}{frames}a = []\nwhen_told(lambda: {act})");
            assert_eq!(Session::value(&session.send(&code).await), "null");
            session.go();
            assert_eq!(session.idle().await, over, "{act}");
            assert_eq!(session.run.session_end(), Some(over));
        }
    });
}

#[test]
fn ends_of_other_cells_are_not_borne_for_ever() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let flood = r#"
import struct
body = b'{"cell_ended":{"number":99,"ending":"interrupted"}}'
frames = (struct.pack('<I', len(body)) + body) * 10001
while frames: frames = frames[os.write(fd, frames):]
import time
time.sleep(60)"#;
        let reply = session.send(&format!("{FIND_SOCKET}{flood}")).await;
        assert_eq!(reply.outcome, Outcome::Crashed(Crash::BadFrame));
        assert_eq!(session.run.session_end(), Some(SessionEnd::BadFrame));
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
            assert_eq!(session.run.session_end(), Some(SessionEnd::Closed));
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
            let cell = admitted(&session.policy, language, "1");
            assert_eq!(session.run.send(&cell, 2), Err(SessionEnd::Closed));
            assert_eq!(session.idle().await, SessionEnd::Closed);
        }
    });
}

#[test]
fn tools_are_for_cells() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let code = r"
def act():
    global seen
    try: call_mcp_tool('a.b', {}).result()
    except Exception as error: seen = str(error)
when_told(act)";
        session.send(&format!("{WAIT_FOR_GO}{code}")).await;
        session.go();
        session.until_done().await;
        let refused = r#""tools can only be called while a cell runs""#;
        assert_eq!(Session::value(&session.send("seen").await), refused);
    });
}
