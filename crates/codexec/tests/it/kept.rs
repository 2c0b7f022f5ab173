//! Sessions below the server: a worker that is kept, driven cell by cell.

mod bash;
mod node;

use std::path::PathBuf;
use std::time::Duration;

use codexec_exec::{Over, Python, Run, Settings, Workers};
use codexec_types::{
    Admitted, Answer, Ask, Asked, Event, Files, Json, Language, Limits, Outcome, Policy, Request,
    Stream, ToolFilter,
};
use tokio::time::timeout;

use crate::support::{PATIENCE, codexec};

/// A session, and how many cells it was sent.
struct Kept {
    run: Run,
    language: Language,
    number: u32,
}

/// What is sent beside the code.
#[derive(Default)]
struct With<'a> {
    input: Option<&'a str>,
    args: &'a [&'a str],
    wall: Option<Duration>,
}

/// What came of a cell.
#[derive(Debug)]
struct Reply {
    out: String,
    err: String,
    outcome: Outcome,
}

const SHORT: Duration = Duration::from_millis(300);

impl Kept {
    async fn open(language: Language) -> Kept {
        Kept::open_within(language, Limits::DEFAULT).await
    }

    async fn open_within(language: Language, limits: Limits) -> Kept {
        Kept::open_with_packages(language, limits, None).await
    }

    async fn open_with_packages(
        language: Language,
        limits: Limits,
        packages: Option<PathBuf>,
    ) -> Kept {
        let settings = Settings {
            program: codexec(),
            role: "zygote-js",
            programs_role: "zygote-programs",
            mounter_role: "mounter",
            limits,
            python: Python::default(),
            node: None,
            path: std::env::var_os("PATH").unwrap_or_default(),
            home: None,
            environment: Vec::new(),
            max: 2,
            warm: 1,
            queue: 1,
            queue_wait: PATIENCE,
            lowered: Vec::new(),
            packages: codexec_exec::packages::Settings::default(),
        };
        let workers = Workers::new(settings);
        let admitted = admitted(language, "", &With::default(), limits);
        let run =
            workers.open(&admitted, vec!["github".to_owned()], packages).await.expect("opened");
        Kept { run, language, number: 0 }
    }

    async fn cell(&mut self, code: &str) -> Reply {
        self.cell_with(code, With::default()).await
    }

    /// With a limit on its time that it is to meet.
    async fn long_cell(&mut self, code: &str) -> Reply {
        self.cell_with(code, With { wall: Some(SHORT), ..With::default() }).await
    }

    async fn cell_with(&mut self, code: &str, with: With<'_>) -> Reply {
        self.number += 1;
        let admitted = admitted(self.language, code, &with, Limits::DEFAULT);
        self.run.send(&admitted, self.number).expect("a session that is there");
        let (mut out, mut err) = (String::new(), String::new());
        loop {
            match timeout(PATIENCE, self.run.next()).await.expect("an event in time") {
                Event::Output { stream: Stream::Out, text } => out.push_str(&text),
                Event::Output { stream: Stream::Err, text } => err.push_str(&text),
                Event::Ask { id, ask } => self.run.answer(Answer { id, result: Ok(echo(ask)) }),
                Event::Image(_) | Event::Progress(_) => {}
                Event::Ended(outcome) => return Reply { out, err, outcome },
            }
        }
    }

    /// What a cell prints that succeeds and complains of nothing.
    #[track_caller]
    fn prints<'a>(&'a mut self, code: &'a str, expected: &'a str) -> impl Future<Output = ()> + 'a {
        let at = std::panic::Location::caller();
        async move {
            let reply = self.cell(code).await;
            let seen = (reply.out.as_str(), reply.err.as_str());
            assert_eq!(seen, (expected, ""), "{at}: {code}: {:?}", reply.outcome);
            assert!(matches!(reply.outcome, Outcome::Returned(_)), "{at}: {:?}", reply.outcome);
        }
    }

    /// The JSON that a cell returns that prints nothing.
    #[track_caller]
    fn returns<'a>(
        &'a mut self,
        code: &'a str,
        expected: &'a str,
    ) -> impl Future<Output = ()> + 'a {
        let at = std::panic::Location::caller();
        async move {
            let reply = self.cell(code).await;
            assert_eq!((reply.out.as_str(), reply.err.as_str()), ("", ""), "{at}: {code}");
            assert_eq!(reply.outcome.value(), Some(expected), "{at}: {code}: {:?}", reply.outcome);
        }
    }

    fn over(&self) -> Option<Over> {
        self.run.is_over()
    }
}

/// Every tool says what it was asked.
fn echo(ask: Ask) -> Json {
    match ask {
        Ask::Tool { args, .. } | Ask::Named { args, .. } => args,
        other => panic!("{other:?}"),
    }
}

fn admitted(language: Language, code: &str, with: &With<'_>, limits: Limits) -> Admitted {
    let policy = Policy {
        languages: Language::ALL.to_vec(),
        code_bytes: 1 << 20,
        input_bytes: 1 << 20,
        limits,
        max_wall: PATIENCE,
        tools: ToolFilter::all(),
        files: Files { allowed: Vec::new(), forbidden: Vec::new(), is_writable: false },
    };
    let input =
        with.input.map_or_else(Json::null, |text| Json::parse(text.to_owned()).expect("json"));
    let request = Request {
        language,
        code: code.to_owned(),
        input,
        args: with.args.iter().map(|arg| (*arg).to_owned()).collect(),
        working_dir: None,
        asked: Asked { wall: with.wall, ..Asked::default() },
    };
    policy.admit_session(request, &[]).expect("admitted")
}
