//! Traces, at a receiver that reads them with OpenTelemetry's own definitions.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::{Value, json};

use super::server::{MODERN, Server, terminate};
use crate::support::{PATIENCE, world};

const RECEIVER: &str = include_str!("otlp_receiver.py");

/// An MCP server whose tool returns the metadata of its request.
const META: &str = "import sys, json\n\
for line in sys.stdin:\n\
\x20   m = json.loads(line)\n\
\x20   if 'id' not in m: continue\n\
\x20   p = m.get('params', {})\n\
\x20   if m['method'] == 'initialize':\n\
\x20       r = {'protocolVersion': p['protocolVersion'], 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'meta', 'version': '0'}}\n\
\x20   elif m['method'] == 'tools/list':\n\
\x20       r = {'tools': [{'name': 'meta', 'inputSchema': {'type': 'object'}}]}\n\
\x20   else:\n\
\x20       r = {'content': [{'type': 'text', 'text': json.dumps(p.get('_meta', {}))}]}\n\
\x20   print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n";

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A receiver of OTLP on a free port. Each line that it prints is a span.
struct Otlp {
    child: Child,
    port: String,
    lines: Receiver<String>,
}

impl Otlp {
    fn start(python: &std::path::Path) -> Otlp {
        let mut command = Command::new(python);
        command.args(["-c", RECEIVER]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python starts");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        // Ends with the receiver.
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let port = lines.recv_timeout(PATIENCE).expect("a port");
        Otlp { child, port, lines }
    }

    /// Waits for this many spans.
    fn spans(&self, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        let next = |_| {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).expect("a span");
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no span: {line}"))
        };
        (0..count).map(next).collect()
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn named<'a>(spans: &'a [Value], name: &str, kind: &str) -> &'a Value {
    let found = spans.iter().find(|span| span["name"] == name && span["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} {name} in {spans:#?}"))
}

fn call(code: &str, trace_parent: Option<&str>) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "0"},
    });
    if let Some(trace_parent) = trace_parent {
        meta["traceparent"] = json!(trace_parent);
    }
    let arguments = json!({"language": "typescript", "code": code});
    let params = json!({"name": "execute_code", "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

const HEADERS: [(&str, &str); 3] =
    [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "execute_code")];

#[test]
fn otl_1_spans_chain_from_the_client_to_the_server_that_code_calls() {
    let Some(world) = world() else { return };
    let python = world.join("venv/bin/python");
    let otlp = Otlp::start(&python);
    let settings = format!(
        "[otlp]\nendpoint = \"http://127.0.0.1:{}\"\nheaders = {{ Authorization = \"env:OTLP_KEY\" }}\n",
        otlp.port,
    );
    let meta = json!({"meta": {"command": python, "args": ["-c", META]}});
    let mut server = Server::with(&settings, &meta, |command| {
        command.args(["--http", "127.0.0.1:0"]).env("OTLP_KEY", "Bearer receiver");
    });
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let code = "const m = await tools.meta.meta({secret: 's3cret'}); return m.traceparent";
    let headers = [&HEADERS[..], &[("traceparent", parent.as_str())]].concat();
    let ran = server.post("/mcp", &server.token, &headers, &call(code, None)).message();
    let seen = ran["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{ran}"));
    let spans = otlp.spans(4);
    let http = named(&spans, "http", "SPAN_KIND_SERVER");
    let tool = named(&spans, "tools/call", "SPAN_KIND_SERVER");
    let execution = named(&spans, "execution", "SPAN_KIND_INTERNAL");
    let upstream = named(&spans, "tools/call", "SPAN_KIND_CLIENT");
    for (span, above) in [
        (http, &json!(CALLER)),
        (tool, &http["span"]),
        (execution, &tool["span"]),
        (upstream, &execution["span"]),
    ] {
        assert_eq!((&span["trace"], &span["parent"]), (&json!(TRACE), above), "{spans:#?}");
    }
    let id = upstream["span"].as_str().expect("an id");
    assert_eq!(seen.trim_matches('"'), format!("00-{TRACE}-{id}-01"));
    assert_eq!(upstream["attributes"]["codexec.server"], "meta");
    assert_eq!(execution["attributes"]["codexec.language"], "typescript");
    assert_eq!(http["authorization"], "Bearer receiver");
    let all = json!(spans).to_string();
    for hidden in ["s3cret", "await", &server.token] {
        assert!(!all.contains(hidden), "{hidden} in {all}");
    }
    // The message's own metadata is nearer than the header; what fails has its code.
    let nearer = format!("00-{TRACE}-00f067aa0ba902b8-01");
    let failing = call("throw new Error('private')", Some(&nearer));
    server.post("/mcp", &server.token, &headers, &failing);
    // What ends just before the server does is sent, too.
    terminate(&server);
    assert!(server.child.wait().expect("it ends").success());
    let spans = otlp.spans(3);
    assert_eq!(named(&spans, "tools/call", "SPAN_KIND_SERVER")["parent"], "00f067aa0ba902b8");
    let execution = named(&spans, "execution", "SPAN_KIND_INTERNAL");
    assert_eq!(execution["attributes"]["error.type"], "RUNTIME_ERROR");
    assert!(!json!(spans).to_string().contains("private"), "{spans:?}");
}

#[test]
fn without_an_endpoint_the_trace_of_the_client_is_passed_on() {
    let meta = json!({"meta": {"command": "python3", "args": ["-c", META]}});
    let server = Server::start("", &meta);
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let code = "return (await tools.meta.meta({})).traceparent ?? 'none'";
    let run = |trace: Option<&str>| {
        let ran = server.post("/mcp", &server.token, &HEADERS, &call(code, trace)).message();
        ran["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned()
    };
    assert_eq!(run(Some(&parent)), parent);
    assert_eq!(run(Some("00-nonsense")), "none");
    assert_eq!(run(None), "none");
}
