//! Cells of one session, one after the other.

mod declarations;
mod interrupts;

use codexec_types::{Cell, CellEnding};

use super::*;

/// A session's guest, from the host's side.
struct TestSession {
    host: UnixStream,
    worker: Option<thread::JoinHandle<()>>,
    language: Language,
    number: u32,
}

/// The output of one cell, and how it ended.
#[derive(Debug, PartialEq)]
struct CellReply {
    written: String,
    ending: String,
}

impl TestSession {
    fn open(language: Language) -> TestSession {
        let (mut host, socket) = UnixStream::pair().expect("a socket pair");
        let worker = thread::Builder::new()
            .stack_size(8 << 20)
            .spawn(move || JsGuest::warm().expect("a warm guest").run(socket))
            .expect("a thread");
        let job = WorkerJob { is_session: true, ..job(language, "") };
        let start = ToGuest::Start(job).encode().expect("a frame");
        host.write_all(&start).expect("a listening guest");
        TestSession { host, worker: Some(worker), language, number: 0 }
    }

    fn say(&mut self, frame: &ToGuest) {
        self.host.write_all(&frame.encode().expect("a frame")).expect("a listening guest");
    }

    fn begin(&mut self, code: &str, input: &str, args: &[&str]) {
        self.number += 1;
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let (number, code, input) = (self.number, code.to_owned(), json(input));
        self.say(&ToGuest::Cell(Cell { number, key: number.to_string(), code, input, args }));
    }

    /// Receives frames until the cell has ended; answers all asks.
    fn end(&mut self) -> CellReply {
        let mut written = String::new();
        loop {
            match next_frame(&mut self.host) {
                FromGuest::Compiled => {}
                FromGuest::Output { text, .. } => written.push_str(&text),
                FromGuest::Ask { id, ask } => {
                    let result = echo(&ask);
                    self.say(&ToGuest::Answer(AskAnswer { id, result }));
                }
                FromGuest::CellEnded { key, ending } => {
                    assert_eq!(key, self.number.to_string());
                    return CellReply { written, ending: self.text(ending) };
                }
                other => panic!("no cell says {other:?}"),
            }
        }
    }

    fn text(&self, ending: CellEnding) -> String {
        let record = |ending| HostRecord {
            is_compiled: true,
            out: String::new(),
            err: String::new(),
            asks: Vec::new(),
            progress: Vec::new(),
            images: Vec::new(),
            ending,
        };
        match ending {
            CellEnding::Returned(value) => value.text().to_owned(),
            CellEnding::Threw(thrown) => super::ending(&record(Err(thrown))),
            CellEnding::Interrupted => "interrupted".to_owned(),
            CellEnding::Exited(_) | CellEnding::DirectoryGone(_) => {
                panic!("{:?} does not say {ending:?}", self.language)
            }
        }
    }

    fn send(&mut self, code: &str) -> CellReply {
        self.begin(code, "null", &[]);
        self.end()
    }
}

impl Drop for TestSession {
    fn drop(&mut self) {
        let _ = self.host.shutdown(std::net::Shutdown::Both);
        let worker = self.worker.take().expect("a worker");
        let ended = worker.join();
        if !thread::panicking() {
            ended.expect("a worker that does not panic");
        }
    }
}

/// Runs cells, each with its expected output and ending.
#[track_caller]
fn check_cells(cells: &[(&str, &str)]) {
    check_cells_in(Language::JavaScript, cells);
}

#[track_caller]
fn check_cells_in(language: Language, cells: &[(&str, &str)]) {
    let mut session = TestSession::open(language);
    for (code, expected) in cells {
        let CellReply { written, ending } = session.send(code);
        assert_eq!(format!("{written}{ending}"), *expected, "{code}");
    }
}

#[test]
fn each_cell_has_its_own_input_and_arguments() {
    let mut session = TestSession::open(Language::JavaScript);
    session.begin("[input.n, args]", r#"{"n":1}"#, &["a", "b"]);
    assert_eq!(session.end().ending, r#"[1,["a","b"]]"#);
    assert_eq!(session.send("[input, args]").ending, "[null,[]]");
    session.begin("const input = 'my own'; input", r#""given""#, &[]);
    assert_eq!(session.end().ending, r#""my own""#);
    assert_eq!(session.send("input").ending, r#""my own""#);
    session.begin("input", r#""given""#, &[]);
    assert_eq!(session.end().ending, r#""given""#);
}

#[test]
fn tools_can_be_called_in_every_cell() {
    let mut session = TestSession::open(Language::JavaScript);
    let call = "const r = await tools.github.x({a: 1}); r.tool.args";
    assert_eq!(session.send(call).ending, r#"{"a":1}"#);
    assert_eq!(session.send(call).ending, r#"{"a":1}"#);
    assert_eq!(session.send("call_tool('github', 'y').result.tool.tool").ending, r#""y""#);
    assert_eq!(session.send("r.tool.server").ending, r#""github""#);
}

#[test]
fn positions_are_in_the_cell_and_frames_name_their_cell() {
    let mut session = TestSession::open(Language::JavaScript);
    session.send("\n\nfunction fails() {\n  throw new Error('x');\n}");
    session.begin("// here\n  fails()", "null", &[]);
    loop {
        if let FromGuest::CellEnded { ending: CellEnding::Threw(thrown), .. } =
            next_frame(&mut session.host)
        {
            assert_eq!(thrown.at.map(|at| (at.line, at.column)), Some((2, 3)));
            assert_eq!(thrown.stack.as_deref(), Some("at fails (cell 1, 4:13)\nat <main> (2:3)"));
            break;
        }
    }
    assert_eq!(session.send("let a = ;").ending, "SYNTAX_ERROR Unexpected token @1:9");
}

#[test]
fn a_later_cell_may_await_a_call() {
    let warning = "[codexec] at <main> (1:24): tools.github.x was not awaited: the call was made, \
                   but the code went on without its result; write await tools.github.x(..)\nnull";
    check_cells(&[
        ("const p = tools.github.x()", warning),
        ("(await p).tool.tool", r#""x""#),
        ("1", "1"),
    ]);
}

#[test]
fn started_work_continues_in_the_next_cell() {
    check_cells(&[
        ("let ticks = 0; const ticking = setInterval(() => ticks++, 1); ticks", "0"),
        ("while (ticks < 3) await new Promise(done => setTimeout(done, 1)); ticks >= 3", "true"),
        (
            "clearInterval(ticking); const later = new Promise(done => globalThis.done = done)",
            "null",
        ),
        ("done(5); await later", "5"),
    ]);
}

#[test]
fn a_cell_that_awaits_nothing_that_could_come_leaves_the_session_whole() {
    let stuck = format!("RUNTIME_ERROR {}", Thrown::STUCK);
    check_cells(&[("const a = 1; await new Promise(() => {})", &stuck), ("a", "1")]);
}
