//! Sessions below the server: workers that are kept, in real sandboxes, driven as the server
//! drives them.

mod bash;
mod cells;
mod ends;
mod leftovers;
mod node;
mod overlay;
mod stops;

use std::sync::LazyLock;
use std::time::Duration;

use codexec_exec::{GuestSettings, Run, SessionEnd, Settings, Workers};
use codexec_types::{
    AdmissionRequest, Admitted, AskAnswer, Grants, Json, Language, Limits, Outcome, OutputStream,
    Policy, RequestedLimits, RunEvent, ToolFilter, WorkingDirPolicy,
};

use tokio::runtime::Runtime;

use crate::support::{PATIENCE, codexec};

/// How much a cell may use, where a test does not say otherwise.
const LIMITS: Limits = Limits { wall: Duration::from_secs(20), ..Limits::DEFAULT };

/// Python that finds the guest's own socket to the host.
const FIND_SOCKET: &str = r"
import gc, os, sys
Wire = sys.modules['codexec_guest_wire'].Wire
fd = next(one for one in gc.get_objects() if isinstance(one, Wire))._fd
";

/// Python for threads that are to do something when the reply is out: they wait for a file that
/// [`Session::go`] makes, and make one in turn.
const WAIT_FOR_GO: &str = r"
import os, threading, time
def when_told(act):
    def run():
        while not os.path.exists('/box/packages/go'): time.sleep(0.005)
        act()
        open('done', 'w').close()
    threading.Thread(target=run, daemon=True).start()
";

/// A session and how far it is.
struct Session {
    run: Run,
    policy: Policy,
    language: Language,
    number: u32,
    keep: tempfile::TempDir,
    packages: tempfile::TempDir,
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

/// What is sent beside a cell's code.
struct With<'a> {
    input: Option<&'a str>,
    args: &'a [&'a str],
    wall: Duration,
}

impl Default for With<'_> {
    fn default() -> Self {
        With { input: None, args: &[], wall: LIMITS.wall }
    }
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
        guests: GuestSettings::default(),
        path: std::env::var_os("PATH").expect("a path"),
        home: None,
        guest_paths: codexec_types::GuestPaths::default(),
        max: 4,
        warm: 1,
        queue: 4,
        queue_wait: PATIENCE,
        lowered: Vec::new(),
        files: codexec_exec::FileSettings {
            max_bytes: 64 << 20,
            max_files: 10_000,
            let_through: Vec::new(),
        },
        work_dirs: vec![std::env::temp_dir()],
        packages: codexec_exec::packages::PackageSettings::default(),
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
        grants: Grants::default(),
        files: WorkingDirPolicy::default(),
    }
}

fn request(language: Language, code: &str) -> AdmissionRequest {
    AdmissionRequest::new(language, code.to_owned())
}

fn admitted(policy: &Policy, language: Language, code: &str) -> Admitted {
    policy.admit(request(language, code), &[], None).expect("admitted")
}

impl Session {
    async fn open(workers: &Workers, language: Language, limits: Limits) -> Session {
        Session::with(workers, &policy(limits), request(language, "")).await
    }

    async fn with(workers: &Workers, policy: &Policy, opening: AdmissionRequest) -> Session {
        let (language, policy) = (opening.language, policy.clone());
        let opening = policy.admit_session(opening, &[], None).expect("admitted");
        let [keep, packages] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let path = packages.path().canonicalize().expect("a path");
        let run = workers.open_session(&opening, Vec::new(), Some(path)).await.expect("a session");
        Session { run, policy, language, number: 0, keep, packages, is_ignored: false }
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
                RunEvent::Output { stream, text } => {
                    match stream {
                        OutputStream::Out => out.push_str(&text),
                        OutputStream::Err => err.push_str(&text),
                    }
                    at(&mut self.run, &text);
                }
                RunEvent::Ask { id, .. } => {
                    asks += 1;
                    if self.is_ignored {
                        continue;
                    }
                    self.run
                        .answer(AskAnswer { id, result: Ok(Json::parse("1".into()).expect("1")) });
                }
                RunEvent::Image(_) | RunEvent::Progress(_) => {}
                RunEvent::Ended(outcome) => break outcome,
            }
        };
        Reply { out, err, outcome, asks }
    }

    async fn send(&mut self, code: &str) -> Reply {
        self.begin(code);
        self.end().await
    }

    async fn send_with(&mut self, code: &str, with: With<'_>) -> Reply {
        self.number += 1;
        let input = with.input.map(|text| Json::parse(text.to_owned()).expect("json"));
        let request = AdmissionRequest {
            input: input.unwrap_or_else(Json::null),
            args: with.args.iter().map(|arg| (*arg).to_owned()).collect(),
            asked: RequestedLimits { wall: Some(with.wall), ..RequestedLimits::default() },
            ..request(self.language, code)
        };
        let cell = self.policy.admit(request, &[], None).expect("admitted");
        self.run.send(&cell, self.number).expect("an open session");
        self.end().await
    }

    /// With a limit on its time that it is to meet.
    async fn send_long(&mut self, code: &str) -> Reply {
        self.send_with(code, With { wall: Duration::from_millis(300), ..With::default() }).await
    }

    /// Sends what prints this, succeeds and complains of nothing.
    async fn prints(&mut self, code: &str, expected: &str) {
        let reply = self.send(code).await;
        let seen = (reply.out.as_str(), reply.err.as_str());
        assert_eq!(seen, (expected, ""), "{code}: {:?}", reply.outcome);
        assert!(matches!(reply.outcome, Outcome::Returned(_)), "{code}: {:?}", reply.outcome);
    }

    /// Sends what gives this JSON and prints nothing.
    async fn returns(&mut self, code: &str, expected: &str) {
        let reply = self.send(code).await;
        assert_eq!((reply.out.as_str(), reply.err.as_str()), ("", ""), "{code}");
        assert_eq!(Session::value(&reply), expected, "{code}");
    }

    /// The JSON of what it returned, and nothing written.
    #[track_caller]
    fn value(reply: &Reply) -> &str {
        reply.outcome.value().unwrap_or_else(|| panic!("{reply:?}"))
    }

    /// What waits for it may begin.
    fn go(&self) {
        std::fs::write(self.packages.path().join("go"), "").expect("written");
    }

    /// Watches the idle session until what has waited is done.
    async fn until_done(&mut self) {
        let begun = std::time::Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "nothing was done");
            let watched =
                tokio::time::timeout(Duration::from_millis(5), self.run.watch_idle()).await;
            assert!(watched.is_err(), "it is over: {watched:?}");
            let changes = self.run.collect_changes(self.keep.path().join("done")).await;
            if changes.created.iter().any(|file| file.path == "done") {
                return;
            }
        }
    }

    async fn idle(&mut self) -> SessionEnd {
        tokio::time::timeout(PATIENCE, self.run.watch_idle()).await.expect("an end")
    }
}
