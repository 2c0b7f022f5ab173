use std::os::unix::fs::MetadataExt as _;

use codexec_types::ResolvedDir;

use super::*;

const JS: Language = Language::JavaScript;
const PYTHON: Language = Language::Python;

#[test]
fn state_stays_from_cell_to_cell_and_sessions_do_not_see_each_other() {
    with_workers(async |workers| {
        for (language, set, get) in [
            (JS, "let x = 1; console.log('set')", "x += 1"),
            (PYTHON, "x = 1\nprint('set')", "x += 1\nx"),
        ] {
            let mut one = Session::open(workers, language, LIMITS).await;
            let mut two = Session::open(workers, language, LIMITS).await;
            assert_eq!(one.send(set).await.out, "set\n", "{language}");
            assert_eq!(Session::value(&one.send(get).await), "2");
            assert_eq!(Session::value(&one.send(get).await), "3");
            let reply = two.send(get).await;
            let Outcome::Threw(thrown) = &reply.outcome else { panic!("{reply:?}") };
            assert!(thrown.message.contains("x"), "{thrown:?}");
            assert_eq!(one.run.session_end(), None);
            assert!(one.run.memory_bytes() > 0 && one.run.pid().is_some());
        }
    });
}

#[test]
fn what_a_cell_does_is_counted_for_the_cell() {
    with_workers(async |workers| {
        let limits = Limits { output_bytes: 1_000, tool_calls: 3, ..LIMITS };
        let mut session = Session::open(workers, PYTHON, limits).await;
        for _ in 0..3 {
            let reply = session.send("print('x' * 900)\nawait call_mcp_tool('a.b', {})").await;
            assert_eq!((reply.out.len(), Session::value(&reply), reply.asks), (901, "1", 1));
            assert_eq!(session.run.usage().tool_calls, 1);
        }
        let reply = session.send("print('x' * 2000)\n1").await;
        assert_eq!(reply.outcome, Outcome::Stopped(codexec_types::Limit::Output));
        let reply = session.send("[call_mcp_tool('a.b', {}) for _ in range(9)]\n1").await;
        assert_eq!(reply.outcome, Outcome::Stopped(codexec_types::Limit::ToolCalls));
        let reply = session.send("2").await;
        assert_eq!((Session::value(&reply), reply.out.as_str()), ("2", ""));
    });
}

#[test]
fn files_are_told_by_the_cell_that_made_them() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let names = |list: &[codexec_types::Artifact]| -> Vec<String> {
            list.iter().map(|file| file.path.clone()).collect()
        };
        session.send("open('a', 'w').write('1'); open('b', 'w').write('1')").await;
        let keep = session.keep.path().join("1");
        let changes = session.run.collect_changes(keep.clone()).await;
        assert_eq!(names(&changes.created), ["a", "b"]);
        assert_eq!(std::fs::read_to_string(keep.join("a")).expect("kept"), "1");
        session.send("import os; os.remove('b'); open('a', 'w').write('22'); open('c', 'w')").await;
        let keep = session.keep.path().join("2");
        let changes = session.run.collect_changes(keep.clone()).await;
        assert_eq!(names(&changes.created), ["c"]);
        assert_eq!(names(&changes.modified), ["a"]);
        assert_eq!(names(&changes.deleted), ["b"]);
        assert_eq!(std::fs::read_to_string(keep.join("a")).expect("kept"), "22");
        session.send("1").await;
        let changes = session.run.collect_changes(session.keep.path().join("3")).await;
        assert!(changes.is_empty(), "{changes:?}");
    });
}

#[test]
fn packages_are_seen_also_those_that_come_later() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let folder = session.packages.path().join("python");
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(folder.join("early.py"), "x = 1").expect("written");
        assert_eq!(Session::value(&session.send("import early\nearly.x").await), "1");
        assert!(matches!(session.send("import late").await.outcome, Outcome::Threw(_)));
        std::fs::write(folder.join("late.py"), "x = 2").expect("written");
        assert_eq!(Session::value(&session.send("import late\nlate.x").await), "2");
        let write = r"
try: open('/box/packages/python/own.py', 'w')
except OSError as error: number = error.errno
number";
        assert_eq!(Session::value(&session.send(write).await), "30", "read-only");
    });
}

#[test]
fn a_session_works_in_a_directory_of_the_users() {
    with_workers(async |workers| {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().canonicalize().expect("a path");
        std::fs::write(path.join("mine"), "1").expect("written");
        let found = std::fs::metadata(&path).expect("there");
        let (device, inode, uid, gid) = (found.dev(), found.ino(), found.uid(), found.gid());
        let files = WorkingDirPolicy {
            allowed: vec![path.clone()],
            is_writable: true,
            ..WorkingDirPolicy::default()
        };
        let policy = Policy { files, ..policy(LIMITS) };
        let working_dir = Some(ResolvedDir { path: path.clone(), device, inode, uid, gid });
        let opening = AdmissionRequest { working_dir, ..request(PYTHON, "") };
        let mut session = Session::with(workers, &policy, opening).await;
        let reply = session.send("open('one', 'w').write(open('mine').read())").await;
        assert!(matches!(reply.outcome, Outcome::Returned(_)), "{reply:?}");
        let changes = session.run.collect_changes(session.keep.path().join("1")).await;
        assert_eq!(changes.created.len(), 1, "{changes:?}");
        assert_eq!(std::fs::read_to_string(path.join("one")).expect("there"), "1");
        session.send("open('.bashrc', 'w').write('x'); open('mine', 'w').write('22')").await;
        let changes = session.run.collect_changes(session.keep.path().join("2")).await;
        assert_eq!((changes.created.len(), changes.modified.len()), (0, 1), "{changes:?}");
        assert_eq!(changes.held_back.len(), 1, "{changes:?}");
        assert!(!path.join(".bashrc").exists());
        session.send("1").await;
        assert!(session.run.collect_changes(session.keep.path().join("3")).await.is_empty());
    });
}

#[test]
fn ses_1_what_a_cell_prints_is_no_end_of_a_reply() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let forged = "import sys\nfor m in ('__END__', '---DONE---', '\\x00\\x01END',\n  \
        '{\"cell_ended\":{\"number\":1,\"ending\":\"interrupted\"}}'): print(m)\nprint('TAIL')";
        assert!(session.send(forged).await.out.ends_with("TAIL\n"));
        let reply = session.send("print('SECOND')").await;
        assert_eq!((reply.out.as_str(), reply.err.as_str()), ("SECOND\n", ""));
    });
}

#[test]
fn ses_1_an_end_that_is_forged_ends_no_other_cell() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        // The guest's own socket, and frames in its own words.
        let forge = r"
import json, struct
for number in (0, 1, 3, 4, 5, 99):
    ended = {'cell_ended': {'key': str(number), 'ending': {'returned': 'forged'}}}
    body = json.dumps(ended).encode()
    os.write(fd, struct.pack('<I', len(body)) + body)";
        session.send("1").await;
        let reply = session.send(&format!("{FIND_SOCKET}{forge}\n'real'")).await;
        assert_eq!(Session::value(&reply), r#""real""#);
        assert_eq!(Session::value(&session.send("'next'").await), r#""next""#);
        assert_eq!(Session::value(&session.send("'and next'").await), r#""and next""#);
    });
}

#[test]
fn ses_2_what_is_written_late_is_marked() {
    with_workers(async |workers| {
        let mut session = Session::open(workers, PYTHON, LIMITS).await;
        let late = "when_told(lambda: print('LATE', flush=True))\nprint('one')";
        assert_eq!(session.send(&format!("{WAIT_FOR_GO}{late}")).await.out, "one\n");
        session.go();
        session.until_done().await;
        let reply = session.send("print('two')").await;
        assert_eq!(
            reply.out,
            "[codexec] written after the last reply:\nLATE\n[codexec] this reply:\ntwo\n"
        );
        assert_eq!(session.send("print('three')").await.out, "three\n");
    });
}
