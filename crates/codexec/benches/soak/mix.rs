//! A mix of all kinds of requests, for a while.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::host::memory_kib;
use crate::server::{Answer, MODERN, Server};
use crate::{Held, say};

const CLIENTS: u64 = 8;
/// The time between two samples of a long run.
const SAMPLE: Duration = Duration::from_secs(60);
/// Memory that the allocator may keep after the first fifth of a run.
const GROWTH_KIB: u64 = 16 << 10;
const LEGACY: &str = "2025-11-25";

/// One kind of request.
pub(crate) struct Action {
    pub(crate) name: &'static str,
    /// How often it comes, compared with the others.
    weight: u64,
    pub(crate) run: fn(&Server) -> Result<(), String>,
}

pub(crate) const ACTIONS: [Action; 13] = [
    Action { name: "typescript", weight: 20, run: |s| expect(s, "typescript", "return 6*7", "42") },
    Action { name: "python", weight: 10, run: |s| expect(s, "python", "6*7", "42") },
    Action { name: "bash", weight: 10, run: |s| expect(s, "bash", "echo $((6*7))", "42") },
    Action { name: "node", weight: 2, run: |s| expect(s, "node", "return 6*7", "42") },
    Action {
        name: "error",
        weight: 5,
        run: |s| expect(s, "javascript", "throw Error('no')", "no"),
    },
    Action { name: "tool call", weight: 10, run: |s| expect(s, "typescript", CALL, "done") },
    Action { name: "timeout", weight: 1, run: |s| expect(s, "bash", "sleep 60", "TIMEOUT") },
    Action { name: "large output", weight: 2, run: |s| expect(s, "typescript", LARGE, "x") },
    Action { name: "cancelled", weight: 3, run: cancelled },
    Action { name: "MCP session", weight: 5, run: mcp_session },
    Action { name: "code_exec", weight: 10, run: code_exec },
    Action { name: "supervision", weight: 10, run: supervision },
    Action { name: "wrong token", weight: 5, run: wrong_token },
];

const CALL: &str = "for (let i = 0; i < 5; i++) await tools.echo.echo({}); return 'done'";
const LARGE: &str = "console.log('x'.repeat(1 << 20))";

/// What the clients counted.
#[derive(Default)]
struct Counts {
    requests: BTreeMap<&'static str, u64>,
    errors: Vec<String>,
}

pub(crate) fn run(server: &Server, duration: Duration) {
    let counts = Mutex::new(Counts::default());
    let begun = Instant::now();
    let pid = server.child.id();
    let mut samples = Vec::new();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let counts = &counts;
            scope.spawn(move || send_until(server, begun + duration, client, counts));
        }
        let mut next = Duration::ZERO;
        while begun.elapsed() < duration {
            if begun.elapsed() >= next {
                let kib = memory_kib(pid, "VmRSS");
                let requests: u64 = counts.lock().expect("not poisoned").requests.values().sum();
                let minutes = begun.elapsed().as_secs() / 60;
                let held = Held::by(server);
                say(&format!("minute {minutes}: {kib} KiB, {requests} requests, {held:?}"));
                samples.push(kib);
                next += SAMPLE;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let counts = counts.into_inner().expect("not poisoned");
    let total: u64 = counts.requests.values().sum();
    let (errors, seconds) = (counts.errors.len(), begun.elapsed().as_secs_f64());
    say(&format!("{total} requests in {seconds:.0} s, {errors} errors: {:?}", counts.requests));
    for error in counts.errors.iter().take(20) {
        say(&format!("  {error}"));
    }
    assert!(counts.errors.is_empty(), "{errors} errors");
    // The first fifth fills caches and pools.
    let settled = samples.get(samples.len() / 5).copied().unwrap_or_default();
    let last = samples.last().copied().unwrap_or_default();
    assert!(last <= settled + GROWTH_KIB, "memory grows: {samples:?}");
}

fn send_until(server: &Server, end: Instant, seed: u64, counts: &Mutex<Counts>) {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let weights: u64 = ACTIONS.iter().map(|action| action.weight).sum();
    while Instant::now() < end {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut chosen = random % weights;
        let action = ACTIONS.iter().find(|action| {
            let is_chosen = chosen < action.weight;
            chosen = chosen.saturating_sub(action.weight);
            is_chosen
        });
        let action = action.expect("the weights add up");
        let done = (action.run)(server);
        let mut counts = counts.lock().expect("not poisoned");
        *counts.requests.entry(action.name).or_default() += 1;
        if let Err(error) = done {
            counts.errors.push(format!("{}: {error:.500}", action.name));
        }
    }
}

/// Runs code over MCP as a single request, and looks for a text in the answer.
fn expect(server: &Server, language: &str, code: &str, text: &str) -> Result<(), String> {
    // Only the code that shall be stopped is: a busy machine is no error.
    let timeout_ms = if text == "TIMEOUT" { 3_000 } else { 60_000 };
    let arguments = json!({"language": language, "code": code, "timeout_ms": timeout_ms});
    let result = server.execute(&server.token, &arguments);
    match result["content"][0]["text"].as_str().is_some_and(|said| said.contains(text)) {
        true => Ok(()),
        false => Err(result.to_string()),
    }
}

fn cancelled(server: &Server) -> Result<(), String> {
    let params =
        json!({"name": "execute_code", "arguments": {"language": "bash", "code": "sleep 30"}});
    let mut stream = server.open_single("/mcp", &server.token, "tools/call", params);
    // The head of the stream comes after half a second.
    let mut first = [0; 12];
    stream.read_exact(&mut first).map_err(|error| error.to_string())?;
    match &first {
        b"HTTP/1.1 200" => Ok(()),
        other => Err(String::from_utf8_lossy(other).into_owned()),
    }
}

fn mcp_session(server: &Server) -> Result<(), String> {
    let token = &server.token;
    let params = json!({
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "soak", "version": "0"},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let opened = server.post("/mcp", token, &[], &hello);
    let id = opened.header("mcp-session-id").ok_or_else(|| format!("{opened:?}"))?;
    let headers = [("Mcp-Session-Id", id), ("MCP-Protocol-Version", LEGACY)];
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    check_status(&server.post("/mcp", token, &headers, &told), 202)?;
    let call =
        json!({"name": "execute_code", "arguments": {"language": "typescript", "code": "1"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call});
    let ran = server.post("/mcp", token, &headers, &call).message();
    if ran["result"]["content"][0]["text"] != "1" {
        return Err(ran.to_string());
    }
    let bearer = format!("Bearer {token}");
    let all = [("Authorization", bearer.as_str()), headers[0], headers[1]];
    // A stream that the client closes without reading it.
    let listening = [all[0], all[1], all[2], ("Accept", "text/event-stream")];
    drop(server.open("GET", "/mcp", &listening, ""));
    check_status(&server.ask("DELETE", "/mcp", &all, ""), 204)
}

fn code_exec(server: &Server) -> Result<(), String> {
    let headers = [("X-API-Key", server.token.as_str()), ("Content-Type", "application/json")];
    let body = json!({"code": "({ result: input.n })", "input": {"n": 7}}).to_string();
    let answer = server.ask("POST", "/api/v1/code/exec", &headers, &body);
    let is_right = answer.status == 200 && answer.json()["result"]["result"] == 7;
    if is_right { Ok(()) } else { Err(format!("{answer:?}")) }
}

fn supervision(server: &Server) -> Result<(), String> {
    let key = [("X-API-Key", server.token.as_str())];
    for path in ["/live", "/ready", "/health", "/metrics"] {
        check_status(&server.ask("GET", path, &key, ""), 200)?;
    }
    Ok(())
}

fn wrong_token(server: &Server) -> Result<(), String> {
    check_status(&server.ask("GET", "/metrics", &[("X-API-Key", "cxt_wrong")], ""), 401)
}

fn check_status(answer: &Answer, status: u16) -> Result<(), String> {
    if answer.status == status { Ok(()) } else { Err(format!("{answer:?}")) }
}

/// Returns a tool call of the newer era, as text.
pub(crate) fn call_text(language: &str, code: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "0"},
    });
    let arguments = json!({"language": language, "code": code});
    let params: Value = json!({"name": "execute_code", "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

/// Returns a whole request, with the headers of a tool call of the newer era.
pub(crate) fn request_text(server: &Server, path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: execute_code\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        server.authority,
        server.token,
        body.len(),
    )
}
