//! The attack cases that are HTTP requests, all against one server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{Answer, Server, parse_answer};
use crate::attacks::case::{self, Case, fill};
use crate::attacks::host::{memory_kib, reset_peak};
use crate::support::PATIENCE;

/// One megabyte of chunks of 64 KiB.
const CHUNK: usize = 64 << 10;

#[test]
fn http_cases() {
    let server = Server::start("[http]\nconnections-per-peer = 250\n", &json!({}));
    server.wait_until_ready();
    let mut cases = case::all();
    cases.retain(|case| case.area == "http" && case.language == "http");
    cases.retain(|case| case.request["op"] != "boundary_burst");
    assert!(cases.len() >= 8, "cases are missing");
    for case in &cases {
        reset_peak(server.child.id());
        let before = memory_kib(server.child.id(), "VmRSS");
        attack(&server, case);
        check_host(&server, case, before);
    }
}

fn attack(server: &Server, case: &Case) {
    let request = &case.request;
    match request["op"].as_str() {
        None if request["steps"].is_array() => {
            for step in request["steps"].as_array().into_iter().flatten() {
                let answer = send(server, case, text(&step["raw"]), &server.token);
                let expected = step["expect_status"].as_array().expect("statuses");
                assert!(expected.contains(&json!(answer.status)), "{}: {answer:?}", case.id);
            }
        }
        None => {
            let answer = send(server, case, text(&request["raw"]), &server.token);
            let expected = &case.http_status;
            assert!(expected.contains(&answer.status), "{}: {answer:?}", case.id);
            let whole = format!("{}{}", answer.head, answer.body);
            for forbidden in &case.oracle.forbid {
                let forbidden = regex::Regex::new(forbidden).expect("a pattern");
                assert!(!forbidden.is_match(&whole), "{}: {whole}", case.id);
            }
        }
        Some("conns") => {
            let settings = "[http]\nconnections-per-peer = 250\nbody-timeout-s = 2\n";
            hold_connections(&Server::start(settings, &json!({})), case);
        }
        Some("burst") => burst(server, case),
        Some(other) => panic!("{}: nobody knows how to {other}", case.id),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// Fills in the names that only requests have, and sends the bytes as they are.
fn send(server: &Server, case: &Case, raw: &str, token: &str) -> Answer {
    let (before, chunks) = match raw.split_once("@@CHUNKED:200MB@@") {
        Some((before, _)) => (before, (200 << 20) / CHUNK),
        None => (raw, 0),
    };
    let bytes = raw_bytes(server, case, before, token);
    let mut stream = server.connect();
    let _ = stream.write_all(&bytes);
    let chunk =
        [format!("{CHUNK:x}\r\n").into_bytes(), vec![b' '; CHUNK], b"\r\n".to_vec()].concat();
    for _ in 0..chunks {
        // The server may have had enough.
        if stream.write_all(&chunk).is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    parse_answer(&String::from_utf8_lossy(&answer))
}

fn raw_bytes(server: &Server, case: &Case, raw: &str, token: &str) -> Vec<u8> {
    let (raw, prefix) = match raw.split_once("@@HEX:80ff@@") {
        Some((head, body)) => (format!("{head}{body}"), &b"\x80\xff"[..]),
        None => (raw.to_owned(), &b""[..]),
    };
    let body = raw.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let mut names = vec![
        ("MCP", "/mcp".to_owned()),
        ("HOSTPORT", server.authority.clone()),
        ("TOKEN", token.to_owned()),
        ("EXEC_TOOL", "execute_code".to_owned()),
        ("WORKDIR", "/box/work".to_owned()),
        ("ID", case.id.clone()),
        ("RANDIP", "192.0.2.77".to_owned()),
    ];
    let length = fill(body, &names).len() + prefix.len();
    names.push(("LEN", length.to_string()));
    let filled = fill(&raw, &names);
    let (head, body) = filled.split_once("\r\n\r\n").expect("a head");
    [head.as_bytes(), b"\r\n\r\n", prefix, body.as_bytes()].concat()
}

/// Many clients that never finish their requests: all are cut off, and others are served meanwhile.
fn hold_connections(server: &Server, case: &Case) {
    let count = case.request["n"].as_u64().expect("a number");
    let bytes = raw_bytes(server, case, text(&case.request["send"]), &server.token);
    let streams: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(&bytes).expect("sent");
            stream
        })
        .collect();
    let begun = Instant::now();
    let mut health_ms: Vec<u128> = (0..40)
        .map(|_| {
            let asked = Instant::now();
            assert_eq!(server.ask("GET", "/health", &[], "").status, 200, "{}", case.id);
            asked.elapsed().as_millis()
        })
        .collect();
    health_ms.sort_unstable();
    assert!(health_ms[37] <= limit(case, "health_p95_ms<="), "{}: {health_ms:?}", case.id);
    for mut stream in streams {
        let mut answer = Vec::new();
        let _ = stream.write_all(text(&case.request["drip"]).as_bytes());
        let _ = stream.read_to_end(&mut answer);
        let answer = parse_answer(&String::from_utf8_lossy(&answer));
        assert_eq!(answer.status, 408, "{}: {answer:?}", case.id);
    }
    let closed_ms = begun.elapsed().as_millis();
    assert!(closed_ms <= limit(case, "conns_closed_within_ms<="), "{}", case.id);
}

/// A number that the case gives for the host.
fn limit(case: &Case, name: &str) -> u128 {
    let limit = case.oracle.host.iter().find_map(|check| check.strip_prefix(name));
    limit.expect("a limit").parse().expect("a number")
}

/// As many requests as are allowed in a minute, and then as many more as possible until after the
/// edge of the minute: no 60 seconds have more than the case allows.
#[test]
fn http_5_a_minute_cannot_be_doubled_at_its_edge() {
    let cases = case::all();
    let case = cases.iter().find(|case| case.id == "HT-032").expect("the case");
    let server = Server::start("", &json!({}));
    let token = server.make_token("edge", "limit:requests-per-minute=30");
    let side = case.request["n_each_side"].as_u64().expect("a number");
    let window = Duration::from_secs(case.request["window_s"].as_u64().expect("a number"));
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    let mut accepted = Vec::new();
    let mut send = || {
        let asked = Instant::now();
        match server.ask("GET", "/nothing", &headers, "").status {
            404 => accepted.push(asked),
            other => assert_eq!(other, 429, "{}", case.id),
        }
        accepted.len()
    };
    let begun = Instant::now();
    for _ in 0..side {
        send();
    }
    // The server's clock tells nobody when the minute is over.
    while send() as u64 <= side {
        assert!(begun.elapsed() < window + PATIENCE, "{}: nothing is accepted again", case.id);
        std::thread::sleep(Duration::from_millis(200));
    }
    for _ in 0..side {
        send();
    }
    let busiest = accepted.iter().map(|first| {
        let is_within = |other: &&Instant| **other >= *first && **other - *first < window;
        accepted.iter().filter(is_within).count()
    });
    let allowed = case.oracle.stat.as_deref().and_then(|it| it.strip_prefix("max_in_any_60s<="));
    let allowed: usize = allowed.expect("a limit").parse().expect("a number");
    assert!(busiest.max().is_some_and(|most| most <= allowed), "{}: {accepted:?}", case.id);
    assert!(accepted.len() as u64 > side, "{}", case.id);
}

/// Many requests at once, of a token that may send 30 in a minute.
fn burst(server: &Server, case: &Case) {
    let token = server.make_token("burst", "limit:requests-per-minute=30");
    let raw = text(&case.request["raw"]);
    let count = case.request["n"].as_u64().expect("a number");
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let sending: Vec<_> =
            (0..count).map(|_| scope.spawn(|| send(server, case, raw, &token))).collect();
        sending.into_iter().map(|sent| sent.join().expect("an answer")).collect()
    });
    let (refused, accepted): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 429);
    assert_eq!((accepted.len(), refused.len()), (30, 70), "{}", case.id);
    assert!(accepted.iter().all(|answer| answer.status == 400), "{accepted:?}");
    assert!(refused.iter().all(|answer| answer.header("retry-after").is_some()));
}

fn check_host(server: &Server, case: &Case, before_kib: u64) {
    assert_eq!(server.ask("GET", "/live", &[], "").status, 200, "{}", case.id);
    let grown_mib = memory_kib(server.child.id(), "VmHWM").saturating_sub(before_kib) >> 10;
    let allowed = case.oracle.host.iter().find_map(|check| check.strip_prefix("rss_delta_mb<="));
    if let Some(allowed) = allowed {
        assert!(grown_mib <= allowed.parse().expect("a number"), "{}: {grown_mib} MiB", case.id);
    }
    let ran = server.home.path().join(format!("ran_{}", case.id));
    assert!(!super::exists(&ran), "{} ran", case.id);
}
