//! The test plays the host; engine, prelude and frames are real.

mod calls;
mod ends;
mod globals;
mod host_functions;
mod hostile;
mod intl;
mod output;
mod sessions;
mod typescript;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use codexec_types::{
    Ask, AskAnswer, CallError, FRAME_HEADER_BYTES, FromGuest, Image, Json, Language, OutputStream,
    Thrown, ToGuest, WorkerJob, frame_length,
};

use super::JsGuest;

type Reply = Result<Json, CallError>;

/// Everything that the host received, by kind.
#[derive(Debug)]
struct HostRecord {
    is_compiled: bool,
    out: String,
    err: String,
    asks: Vec<Ask>,
    progress: Vec<String>,
    images: Vec<Image>,
    ending: Result<String, Thrown>,
}

/// Answers each ask at once.
fn play(job: WorkerJob, answer: impl Fn(&Ask) -> Reply) -> HostRecord {
    play_batches(job, 1, answer)
}

/// Answers after every `batch` asks, the last ask first.
fn play_batches(job: WorkerJob, batch: usize, answer: impl Fn(&Ask) -> Reply) -> HostRecord {
    let (mut host, socket) = UnixStream::pair().expect("a socket pair");
    // As large as the main thread's stack, on which workers run.
    let worker = thread::Builder::new()
        .stack_size(8 << 20)
        .spawn(move || JsGuest::warm().expect("a warm guest").run(socket))
        .expect("a thread");
    host.write_all(&ToGuest::Start(job).encode().expect("a frame")).expect("a listening guest");
    let mut record = HostRecord {
        is_compiled: false,
        out: String::new(),
        err: String::new(),
        asks: Vec::new(),
        progress: Vec::new(),
        images: Vec::new(),
        ending: Ok("nothing".to_owned()),
    };
    let mut unanswered = Vec::new();
    loop {
        match next_frame(&mut host) {
            FromGuest::Compiled => record.is_compiled = true,
            FromGuest::Output { stream: OutputStream::Out, text } => record.out.push_str(&text),
            FromGuest::Output { stream: OutputStream::Err, text } => record.err.push_str(&text),
            FromGuest::Progress(text) => record.progress.push(text),
            FromGuest::Image(image) => record.images.push(image),
            FromGuest::CellEnded { .. } => panic!("this is no session"),
            FromGuest::Ask { id, ask } => {
                unanswered.push(AskAnswer { id, result: answer(&ask) });
                record.asks.push(ask);
                if unanswered.len() == batch {
                    for answer in unanswered.drain(..).rev() {
                        let frame = ToGuest::Answer(answer).encode().expect("a frame");
                        host.write_all(&frame).expect("a listening guest");
                    }
                }
            }
            FromGuest::Returned(json) => {
                record.ending = Ok(json.text().to_owned());
                break;
            }
            FromGuest::Threw(thrown) => {
                record.ending = Err(thrown);
                break;
            }
        }
    }
    worker.join().expect("a worker that does not panic");
    assert_eq!(host.read(&mut [0]).expect("an open socket"), 0, "something followed the ending");
    record
}

fn next_frame(host: &mut UnixStream) -> FromGuest {
    let mut header = [0; FRAME_HEADER_BYTES];
    host.read_exact(&mut header).expect("a frame");
    let mut body = vec![0; frame_length(header).expect("a length")];
    host.read_exact(&mut body).expect("a body");
    FromGuest::decode(&body).expect("a frame that says something")
}

fn job(language: Language, code: &str) -> WorkerJob {
    WorkerJob {
        args: Vec::new(),
        is_session: false,
        has_stdin: false,
        language,
        code: code.to_owned(),
        input: json(r#"{"n":7}"#),
        servers: vec!["github".to_owned(), "my-server".to_owned()],
        memory_bytes: 64 << 20,
    }
}

fn javascript(code: &str) -> HostRecord {
    play(job(Language::JavaScript, code), echo)
}

/// Answers every call with itself.
fn echo(ask: &Ask) -> Reply {
    Ok(json(&serde_json::to_string(ask).expect("an ask")))
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).expect("json")
}

/// Returns the value's JSON, or `CODE message @line:column`.
fn ending(record: &HostRecord) -> String {
    match &record.ending {
        Ok(text) => text.clone(),
        Err(thrown) => {
            let at = thrown.at.map(|at| format!(" @{}:{}", at.line, at.column));
            format!("{} {}{}", thrown.code.name(), thrown.message, at.unwrap_or_default())
        }
    }
}

#[track_caller]
fn check(code: &str, expected: &str) {
    let record = javascript(code);
    assert_eq!(format!("{}{}", record.err, ending(&record)), expected, "{code}");
}

#[track_caller]
fn check_typescript(code: &str, expected: &str) {
    let record = play(job(Language::TypeScript, code), echo);
    assert_eq!(format!("{}{}", record.err, ending(&record)), expected, "{code}");
}
