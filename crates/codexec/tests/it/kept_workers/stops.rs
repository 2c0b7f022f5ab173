use codexec_types::Limit;

use super::*;

const JS: Language = Language::JavaScript;
const PYTHON: Language = Language::Python;

/// A loop of 30 s with a limit of less, and the session goes on.
#[test]
fn ses_3_a_cell_that_runs_too_long_is_stopped_and_the_session_goes_on() {
    with_workers(async |workers| {
        let limits = Limits { wall: Duration::from_millis(700), ..LIMITS };
        for (language, cells) in [
            (JS, ["var kept = 1", "kept = 2; while (true) {}", "kept"]),
            (
                JS,
                ["var kept = 1", "kept = 2; await new Promise(d => setTimeout(d, 30000))", "kept"],
            ),
            (PYTHON, ["kept = 1", "kept = 2\nimport time\ntime.sleep(30)", "kept"]),
            (PYTHON, ["kept = 1", "kept = 2\nwhile True: pass", "kept"]),
            (PYTHON, ["kept = 1", "kept = 2\nimport asyncio\nawait asyncio.sleep(30)", "kept"]),
        ] {
            let mut session = Session::open(workers, language, LIMITS).await;
            session.send(cells[0]).await;
            session.policy = policy(limits);
            let reply = session.send(cells[1]).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall), "{cells:?}");
            assert_eq!(session.run.session_end(), None, "{cells:?}");
            let reply = session.send(cells[2]).await;
            assert_eq!(Session::value(&reply), "2", "{cells:?}");
            assert_eq!((reply.out.as_str(), reply.err.as_str()), ("", ""), "{cells:?}");
        }
    });
}

#[test]
fn ses_3_a_cell_that_does_not_stop_ends_its_session() {
    with_workers(async |workers| {
        let limits = Limits { wall: Duration::from_millis(500), ..LIMITS };
        for code in [
            "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\nwhile True: abs(1)",
            "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass",
            "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        ] {
            let mut session = Session::open(workers, PYTHON, LIMITS).await;
            session.send("'it listens'").await;
            session.policy = policy(limits);
            let reply = session.send(code).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall), "{code}");
            assert_eq!(session.run.session_end(), Some(SessionEnd::Stopped(Limit::Wall)), "{code}");
            let cell = admitted(&session.policy, PYTHON, "1");
            assert_eq!(session.run.send(&cell, 9), Err(SessionEnd::Stopped(Limit::Wall)));
        }
    });
}

#[test]
fn a_cell_that_is_cancelled_leaves_the_session_as_it_was() {
    with_workers(async |workers| {
        for (language, code, get) in [
            (JS, "var kept = 2; console.log('runs'); for (;;);", "kept"),
            (PYTHON, "kept = 2\nprint('runs', flush=True)\nwhile True: pass", "kept"),
        ] {
            let mut session = Session::open(workers, language, LIMITS).await;
            session.begin(code);
            let reply = session.end_after(|run, _| run.cancel()).await;
            assert_eq!(reply.outcome, Outcome::Cancelled, "{reply:?}");
            assert_eq!(Session::value(&session.send(get).await), "2");
        }
    });
}

#[test]
fn output_without_end_is_stopped_and_the_session_goes_on() {
    with_workers(async |workers| {
        let limits = Limits { output_bytes: 10_000, ..LIMITS };
        for (language, code) in
            [(JS, "for (;;) console.log('x'.repeat(99))"), (PYTHON, "while True: print('x' * 99)")]
        {
            let mut session = Session::open(workers, language, limits).await;
            let reply = session.send(code).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Output));
            assert!(reply.out.len() <= 10_000, "{}", reply.out.len());
            let reply = session.send("2").await;
            assert_eq!((Session::value(&reply), reply.out.as_str()), ("2", ""), "{language}");
        }
    });
}

#[test]
fn processor_time_is_counted_by_the_cell() {
    with_workers(async |workers| {
        let limits = Limits { cpu: Duration::from_millis(600), ..LIMITS };
        let mut session = Session::open(workers, PYTHON, limits).await;
        let burn = |seconds: f64| {
            format!(
                "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n'burnt'"
            )
        };
        for _ in 0..3 {
            assert_eq!(Session::value(&session.send(&burn(0.4)).await), r#""burnt""#);
            assert!(session.run.usage().cpu >= Duration::from_millis(200));
        }
        let reply = session.send(&burn(30.0)).await;
        assert_eq!(reply.outcome, Outcome::Stopped(Limit::Cpu));
        assert_eq!(Session::value(&session.send("1").await), "1");
    });
}

#[test]
fn ses_3_a_cell_with_many_calls_under_way_can_be_stopped() {
    with_workers(async |workers| {
        let limits = Limits { wall: Duration::from_millis(700), ..LIMITS };
        for (language, code) in [
            (JS, "await Promise.all(Array.from({length: 300}, () => callMCPTool('a.b', {})))"),
            (PYTHON, "[call_mcp_tool('a.b', {}) for _ in range(300)][0].result()"),
        ] {
            let mut session = Session::open(workers, language, LIMITS).await;
            session.send("'it listens'").await;
            session.policy = policy(limits);
            session.is_ignored = true;
            let reply = session.send(code).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall), "{language}");
            assert_eq!(session.run.session_end(), None, "{language}");
            session.policy = policy(LIMITS);
            session.is_ignored = false;
            let reply = session.send("await call_mcp_tool('a.b', {})").await;
            assert_eq!((Session::value(&reply), reply.asks), ("1", 1), "{reply:?}");
            assert_eq!((reply.out.as_str(), reply.err.as_str()), ("", ""), "{language}");
        }
    });
}
