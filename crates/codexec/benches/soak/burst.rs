//! Many executions at the same moment.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::server::{Answer, Server, parse_answer};
use crate::{Held, say};

/// How long a refusal may take.
const PROMPT: Duration = Duration::from_millis(50);
const STACK: usize = 128 << 10;

/// Sends `count` executions at once; each one is answered, or refused soon with `Retry-After`.
pub(crate) fn run(server: &Server, count: usize) {
    for (path, text) in [
        ("/api/v1/code/exec", r#"{"code": "({ result: 1 })"}"#.to_owned()),
        ("/mcp", crate::mix::call_text("typescript", "return 1")),
    ] {
        let begun = Instant::now();
        let answers = send_at_once(server, path, &text, count);
        let (mut accepted, mut late, mut refused) = (0, 0, Vec::new());
        for (answer, took) in &answers {
            match is_refusal(answer) {
                true => {
                    // A refusal that comes as a stream has it in its metadata.
                    let says_when = answer.header("retry-after").is_some()
                        || answer.body.contains("codexec/retry_after_s");
                    assert!(says_when, "{answer:?}");
                    refused.push(*took);
                    late += usize::from(*took > PROMPT);
                }
                false => {
                    assert_eq!(answer.status, 200, "{answer:?}");
                    accepted += 1;
                }
            }
        }
        refused.sort();
        let at = |percent: usize| refused.get((refused.len() * percent / 100).saturating_sub(1));
        say(&format!(
            "{count} executions at once at {path}: {accepted} accepted, {} refused in {:?} \
             (median), {:?} (p99), {:?} (longest), {late} later than {PROMPT:?}; {:?} in all; {:?}",
            refused.len(),
            at(50).copied().unwrap_or_default(),
            at(99).copied().unwrap_or_default(),
            refused.last().copied().unwrap_or_default(),
            begun.elapsed(),
            Held::by(server),
        ));
        assert_eq!(accepted + refused.len(), count);
    }
}

fn is_refusal(answer: &Answer) -> bool {
    answer.status == 503 || answer.body.contains("BUSY:")
}

/// Connects all clients first, then sends all requests at once.
fn send_at_once(server: &Server, path: &str, body: &str, count: usize) -> Vec<(Answer, Duration)> {
    let barrier = Barrier::new(count);
    let streams: Vec<TcpStream> = (0..count).map(|_| server.connect()).collect();
    let text = crate::mix::request_text(server, path, body);
    std::thread::scope(|scope| {
        let threads: Vec<_> = streams
            .into_iter()
            .map(|mut stream| {
                let (barrier, text) = (&barrier, &text);
                let send = move || {
                    barrier.wait();
                    let begun = Instant::now();
                    stream.write_all(text.as_bytes()).expect("sent");
                    let mut bytes = Vec::new();
                    stream.read_to_end(&mut bytes).expect("an answer");
                    (parse_answer(&String::from_utf8_lossy(&bytes)), begun.elapsed())
                };
                let builder = std::thread::Builder::new().stack_size(STACK);
                builder.spawn_scoped(scope, send).expect("a thread")
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    })
}
