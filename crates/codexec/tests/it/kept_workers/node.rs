//! Node in a session.

use std::fs;

use codexec_types::Limit;

use super::*;

async fn node(workers: &Workers) -> Session {
    Session::open(workers, Language::Node, LIMITS).await
}

#[test]
fn what_a_cell_declares_is_there_in_the_next() {
    with_workers(async |workers| {
        let mut node = node(workers).await;
        node.returns("const a = 1; let b = 2; class C {} function f() { return a + b }", "null")
            .await;
        node.returns("b = 5; [f(), C.name]", "[6,\"C\"]").await;
        node.returns(
            "import fs from 'node:fs'; const a = 10; fs.writeFileSync('file', 'text')",
            "null",
        )
        .await;
        node.returns("fs.readFileSync('file', 'utf8') + f()", "\"text15\"").await;
        node.prints("console.log(a)", "10\n").await;
    });
}

#[test]
fn every_cell_has_its_own_input_and_arguments() {
    with_workers(async |workers| {
        let mut node = node(workers).await;
        let with = With { input: Some("{\"n\":1}"), args: &["a b", ""], wall: LIMITS.wall };
        let reply = node.send_with("[input.n, process.argv.slice(2)]", with).await;
        assert_eq!(reply.outcome.value(), Some("[1,[\"a b\",\"\"]]"));
        node.returns("[input, process.argv.length]", "[null,2]").await;
    });
}

#[test]
fn errors_and_exits_end_the_cell_and_not_the_session() {
    with_workers(async |workers| {
        let mut node = node(workers).await;
        node.returns("let x = 5; 1", "1").await;
        let Outcome::Threw(thrown) = node.send("\n  nothing()").await.outcome else {
            panic!("it threw")
        };
        assert_eq!(thrown.at.map(|at| (at.line, at.column)), Some((2, 3)));
        assert_eq!(thrown.stack.as_deref(), Some("at <main> (cell-2.mjs:2:3)"));
        assert_eq!(node.send("process.exit(3)").await.outcome, Outcome::Exited { code: 3 });
        node.returns("x", "5").await;
        assert!(matches!(
            node.send("process.kill(process.pid, 9)").await.outcome,
            Outcome::Crashed(_)
        ));
        assert_eq!(node.run.session_end().map(SessionEnd::code), Some("exited"));
    });
}

#[test]
fn ses_5_a_cell_that_is_too_long_is_stopped_and_the_state_stays() {
    with_workers(async |workers| {
        let mut node = node(workers).await;
        node.returns("let x = 5; 1", "1").await;
        for code in [
            "while (true) {}",
            "await null; for (;;) try { for (;;); } catch {}",
            "await new Promise(r => setTimeout(r, 100000))",
            "for (;;) { await new Promise(r => setTimeout(r, 1)); }",
            "setTimeout(() => { for (;;); }, 1); await new Promise(r => setTimeout(r, 100000))",
        ] {
            let reply = node.send_long(code).await;
            assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall), "{code}");
            assert_eq!(node.run.session_end(), None, "{code}");
            node.returns("await new Promise(r => setTimeout(r, 20)); x", "5").await;
        }
    });
}

#[test]
fn ses_5_a_cell_that_is_stopped_before_node_is_up_ends_nothing_else() {
    with_workers(async |workers| {
        let mut node = node(workers).await;
        let with = With { wall: Duration::from_millis(1), ..With::default() };
        let reply = node.send_with("for (;;);", with).await;
        assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall));
        if node.run.session_end().is_none() {
            node.returns("1", "1").await;
        }
    });
}

#[test]
fn ses_5_a_cell_that_cannot_be_stopped_takes_its_session_with_it() {
    with_workers(async |workers| {
        let mut node = node(workers).await;
        node.returns("1", "1").await;
        let reply = node.send("require('child_process').execSync('mkfifo pipe'); 1").await;
        assert_eq!(Session::value(&reply), "1");
        let reply = node.send_long("require('fs').readFileSync('pipe')").await;
        assert_eq!(reply.outcome, Outcome::Stopped(Limit::Wall));
        assert_eq!(node.run.session_end().map(SessionEnd::code), Some("timeout"));
    });
}

#[test]
fn tools_can_be_called_in_every_cell() {
    with_workers(async |workers| {
        let mut node = node(workers).await;
        node.returns("await callTool('github', 'get', {a: 1})", "1").await;
        node.returns("call_tool('github', 'get', {a: 2}).result", "1").await;
    });
}

#[test]
fn packages_of_the_session_are_found_however_they_are_asked_for() {
    with_workers(async |workers| {
        let mut node = node(workers).await;
        let folder = node.packages.path().join("node_modules");
        let package = folder.join("pack");
        fs::create_dir_all(&package).expect("made");
        fs::write(package.join("package.json"), "{\"name\":\"pack\",\"main\":\"m.js\"}")
            .expect("written");
        fs::write(package.join("m.js"), "module.exports = 'packed'").expect("written");
        node.returns("require('pack')", "\"packed\"").await;
        node.returns("import pack from 'pack'; pack", "\"packed\"").await;
        node.returns("(await import('pack')).default", "\"packed\"").await;
        let lib =
            "require('fs').writeFileSync('lib.mjs', 'import p from \\'pack\\'; export default p')";
        node.returns(lib, "null").await;
        node.returns("(await import('./lib.mjs')).default", "\"packed\"").await;
        // Also what is installed while the session is there.
        let Outcome::Threw(thrown) = node.send("await import('late')").await.outcome else {
            panic!("there is no such package yet")
        };
        assert!(thrown.message.contains("Cannot find package 'late'"), "{}", thrown.message);
        let late = folder.join("late");
        fs::create_dir(&late).expect("made");
        fs::write(late.join("index.js"), "module.exports = 'late'").expect("written");
        fs::write(late.join("package.json"), "{\"name\":\"late\"}").expect("written");
        node.returns("(await import('late')).default", "\"late\"").await;
    });
}
