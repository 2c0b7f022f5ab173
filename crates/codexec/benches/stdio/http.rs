//! The same calls over HTTP and over stdio, in one run.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use crate::server::{MODERN, Server};
use crate::support::Client;
use crate::{Bench, median, ms, sample, warm};

const CONNECTIONS: usize = 8;

/// A client that keeps its connection.
struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Connection {
    fn open(server: &Server) -> Connection {
        let stream = server.connect();
        stream.set_nodelay(true).expect("set");
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {MODERN}\r\n",
            server.authority, server.token
        );
        Connection { stream: BufReader::new(stream), head }
    }

    /// Calls a method of MCP, and returns the whole message that answers.
    fn call(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
        });
        let name = params["name"].as_str().unwrap_or("-").to_owned();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = message.to_string();
        let text = format!(
            "{}Mcp-Method: {method}\r\nMcp-Name: {name}\r\nContent-Length: {}\r\n\r\n{body}",
            self.head,
            body.len(),
        );
        self.stream.get_mut().write_all(text.as_bytes()).expect("sent");
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a line of the head");
            let value = line.strip_prefix("content-length: ");
            if let Some(value) = value {
                length = value.trim().parse().expect("a number");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn execute(&mut self, code: &str) -> Value {
        let arguments = json!({"language": "typescript", "code": code});
        self.call("tools/call", json!({"name": "execute_code", "arguments": arguments}))
    }
}

impl Bench {
    pub(crate) fn http(&mut self) {
        let settings = "[http]\nrequests-per-minute = 10000000\n";
        let server = Server::start(settings, &json!({}));
        server.wait_until_ready();
        let mut http = Connection::open(&server);
        let mut stdio = Client::start(&json!({}));
        warm(&mut stdio);
        for _ in 0..8 {
            http.execute("0");
        }
        let (mut over_http, mut over_stdio) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            over_http.extend(sample(1, || {
                let ran = http.execute("1+1");
                assert_eq!(ran["result"]["content"][0]["text"], "2", "{ran}");
            }));
            over_stdio.extend(sample(1, || drop(stdio.run("1+1").fine())));
        }
        over_http.sort();
        over_stdio.sort();
        let beside = format!("over stdio, in the same run: {:.2} ms", ms(median(&over_stdio)));
        self.push_times("TypeScript `1+1` over HTTP", &over_http, None, beside);
        let total = self.rounds * 25;
        let lists = rate(&server, total, |connection| {
            let listed = connection.call("tools/list", json!({}));
            assert!(listed["result"]["tools"].is_array(), "{listed}");
        });
        let what = "HTTP requests per second (`tools/list`), 8 connections";
        self.push_row(what, lists, "/s", None, String::new());
        let runs = rate(&server, self.rounds * 5, |connection| {
            let ran = connection.execute("1+1");
            assert_eq!(ran["result"]["content"][0]["text"], "2", "{ran}");
        });
        let what = "executions per second over HTTP, 8 connections";
        self.push_row(what, runs, "/s", None, String::new());
    }
}

/// Returns requests per second over several connections.
fn rate(server: &Server, total: usize, request: impl Fn(&mut Connection) + Sync) -> f64 {
    let mut connections: Vec<Connection> =
        (0..CONNECTIONS).map(|_| Connection::open(server)).collect();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for connection in &mut connections {
            let request = &request;
            scope.spawn(move || {
                for _ in 0..total / CONNECTIONS {
                    request(connection);
                }
            });
        }
    });
    (total / CONNECTIONS * CONNECTIONS) as f64 / begun.elapsed().as_secs_f64()
}
