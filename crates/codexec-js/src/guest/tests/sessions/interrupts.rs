use super::*;

/// Interrupts the cell after it has printed "runs".
#[track_caller]
fn run_interrupted(session: &mut TestSession, code: &str) -> CellReply {
    session.begin(code, "null", &[]);
    loop {
        if let FromGuest::Output { text, .. } = next_frame(&mut session.host)
            && text == "runs\n"
        {
            break;
        }
    }
    session.say(&ToGuest::Interrupt);
    session.end()
}

/// Checks that the cell stops, that its effects before are kept, and that it does not affect the
/// next cell.
#[track_caller]
fn check_stops(code: &str) {
    let mut session = TestSession::open(Language::JavaScript);
    session.send("let kept = 1");
    let reply = run_interrupted(&mut session, &format!("kept = 2; console.log('runs');\n{code}"));
    assert_eq!(reply.ending, "interrupted", "{code}");
    let next = "await new Promise(done => setTimeout(done, 5)); kept";
    let expected = CellReply { written: String::new(), ending: "2".to_owned() };
    assert_eq!(session.send(next), expected, "after {code}");
}

#[test]
fn ses_3_whatever_a_cell_does_it_can_be_stopped() {
    check_stops("while (true) {}");
    check_stops("for (;;) await null");
    check_stops("await new Promise(done => setTimeout(done, 1e8))");
    check_stops("await new Promise(() => setInterval(() => {}, 1000))");
    check_stops("for (;;) { try { for (;;); } catch { console.log('caught') } finally { 1 } }");
    check_stops("async function f() { for (;;) { try { await null } catch {} } } await f()");
    check_stops("const f = () => { Promise.resolve().then(f) }; f(); for (;;) await null");
    check_stops("(function g() { try { g() } catch {} g() })()");
    check_stops("JSON.stringify({toJSON() { for (;;); }})");
    check_stops("({toJSON() { for (;;); }})");
    check_stops("[1].sort(() => { for (;;); }); [3, 2, 1].sort(() => { for (;;); })");
    check_stops("/(a*)*b/.test('a'.repeat(40))");
}

#[test]
fn ses_3_nothing_of_a_stopped_cell_is_left() {
    check_stops("setInterval(() => console.log('late'), 1); for (;;);");
    check_stops("setTimeout(() => console.log('late'), 0); for (;;);");
    check_stops("Promise.reject(new Error('late')); for (;;);");
    check_stops("tools.github.x().then(() => console.log('late')); for (;;);");
    check_stops("(async () => { await null; throw new Error('late') })(); for (;;);");
}

#[test]
fn a_cell_that_waits_for_an_answer_can_be_stopped() {
    for call in ["await tools.github.x()", "call_tool('github', 'x')"] {
        let mut session = TestSession::open(Language::JavaScript);
        session.begin(&format!("try {{ {call} }} catch (e) {{ for (;;); }}"), "null", &[]);
        loop {
            if let FromGuest::Ask { id, .. } = next_frame(&mut session.host) {
                session.say(&ToGuest::Interrupt);
                assert_eq!(session.end().ending, "interrupted");
                // A late answer is ignored.
                session.say(&ToGuest::Answer(AskAnswer { id, result: Ok(json("1")) }));
                break;
            }
        }
        assert_eq!(session.send("(await tools.github.y()).tool.tool").ending, r#""y""#);
    }
}

#[test]
fn an_interrupt_that_comes_too_late_stops_nothing() {
    let mut session = TestSession::open(Language::JavaScript);
    assert_eq!(session.send("1").ending, "1");
    session.say(&ToGuest::Interrupt);
    assert_eq!(
        session.send("let s = 0; for (let i = 0; i < 1e5; i++) s += i; s").ending,
        "4999950000"
    );
}
