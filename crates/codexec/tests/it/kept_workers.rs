//! Sessions below the server: workers that are kept, in real sandboxes, driven as the server
//! drives them.

mod cells;
mod ends;
mod stops;

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use codexec_exec::{Over, Python, Run, Settings, Workers};
use codexec_types::{
    Admitted, Answer, Asked, Event, Files, Json, Language, Limits, Outcome, Policy, Request,
    Stream, ToolFilter,
};

use tokio::runtime::Runtime;

use crate::support::{PATIENCE, codexec};

/// How much a cell may use, where a test does not say otherwise.
const LIMITS: Limits = Limits { wall: Duration::from_secs(20), ..Limits::DEFAULT };

/// Python that finds the guest's own socket to the host.
const FIND_SOCKET: &str = r"
import os, stat
def is_socket(fd):
    try: return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError: return False
fd = next(fd for fd in range(3, 1000) if is_socket(fd))
";

/// A session and how far it is.
struct Session {
    run: Run,
    policy: Policy,
    language: Language,
    number: u32,
    keep: tempfile::TempDir,
    /// Whether it gets no answers to what it asks.
    is_ignored: bool,
}

/// What came of one cell.
#[derive(Debug)]
struct Reply {
    out: String,
    err: String,
    outcome: Outcome,
    asks: usize,
}

/// Runs a test with the workers that all of them share: one process has one place for its groups.
fn with_workers<T>(test: impl AsyncFnOnce(&Workers) -> T) -> T {
    static SHARED: LazyLock<(Runtime, Workers)> = LazyLock::new(|| {
        let runtime = Runtime::new().expect("a runtime");
        (runtime, Workers::new(settings()))
    });
    let (runtime, workers) = &*SHARED;
    runtime.block_on(test(workers))
}

fn settings() -> Settings {
    Settings {
        program: codexec(),
        role: "zygote-js",
        programs_role: "zygote-programs",
        mounter_role: "mounter",
        limits: Limits::DEFAULT,
        python: Python::default(),
        node: None,
        path: std::env::var_os("PATH").expect("a path"),
        home: None,
        environment: Vec::new(),
        max: 4,
        warm: 1,
        queue: 4,
        queue_wait: PATIENCE,
        lowered: Vec::new(),
        packages: codexec_exec::packages::Settings::default(),
    }
}

fn policy(limits: Limits) -> Policy {
    Policy {
        languages: Language::ALL.to_vec(),
        code_bytes: 1 << 20,
        input_bytes: 1 << 20,
        limits,
        max_wall: PATIENCE,
        tools: ToolFilter::default(),
        files: Files::default(),
    }
}

fn request(language: Language, code: &str) -> Request {
    let (code, input, args) = (code.to_owned(), Json::null(), Vec::new());
    Request { language, code, input, args, working_dir: None, asked: Asked::default() }
}

fn admitted(policy: &Policy, language: Language, code: &str) -> Admitted {
    policy.admit(request(language, code), &[]).expect("admitted")
}

impl Session {
    async fn open(workers: &Workers, language: Language, limits: Limits) -> Session {
        Session::with_packages(workers, language, limits, None).await
    }

    async fn with_packages(
        workers: &Workers,
        language: Language,
        limits: Limits,
        packages: Option<PathBuf>,
    ) -> Session {
        let policy = policy(limits);
        let opening = request(language, "");
        let opening = policy.admit_session(opening, &[]).expect("admitted");
        let run = workers.open(&opening, Vec::new(), packages).await.expect("a session");
        let keep = tempfile::tempdir().expect("a directory");
        Session { run, policy, language, number: 0, keep, is_ignored: false }
    }

    fn begin(&mut self, code: &str) {
        self.number += 1;
        let cell = admitted(&self.policy, self.language, code);
        self.run.send(&cell, self.number).expect("an open session");
    }

    /// Listens until the cell has ended; answers every ask with 1.
    async fn end(&mut self) -> Reply {
        self.end_after(|_, _| {}).await
    }

    /// The same, and does something at each piece of output.
    async fn end_after(&mut self, mut at: impl FnMut(&mut Run, &str)) -> Reply {
        let (mut out, mut err, mut asks) = (String::new(), String::new(), 0);
        let outcome = loop {
            match tokio::time::timeout(PATIENCE, self.run.next()).await.expect("an event") {
                Event::Output { stream, text } => {
                    match stream {
                        Stream::Out => out.push_str(&text),
                        Stream::Err => err.push_str(&text),
                    }
                    at(&mut self.run, &text);
                }
                Event::Ask { id, .. } => {
                    asks += 1;
                    if self.is_ignored {
                        continue;
                    }
                    self.run.answer(Answer { id, result: Ok(Json::parse("1".into()).expect("1")) });
                }
                Event::Image(_) | Event::Progress(_) => {}
                Event::Ended(outcome) => break outcome,
            }
        };
        Reply { out, err, outcome, asks }
    }

    async fn send(&mut self, code: &str) -> Reply {
        self.begin(code);
        self.end().await
    }

    /// The JSON of what it returned, and nothing written.
    #[track_caller]
    fn value(reply: &Reply) -> &str {
        reply.outcome.value().unwrap_or_else(|| panic!("{reply:?}"))
    }

    async fn idle(&mut self) -> Over {
        tokio::time::timeout(PATIENCE, self.run.idle()).await.expect("an end")
    }
}
