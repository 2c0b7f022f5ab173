//! Bounds of connections that only whole connections show: slow readers, and clients of balancers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use super::server::{MODERN, Server};
use super::{call, hello};
use crate::support::PATIENCE;

#[test]
fn http_2_a_client_that_does_not_read_is_disconnected() {
    let settings = "[http]\nwrite-timeout-s = 1\nconnections-per-peer = 1\n";
    let server = Server::start(settings, &json!({}));
    wait_for_a_free_connection(&server);
    let made = call("head -c 3000000 /dev/urandom | base64 > big.txt", "bash");
    let made = server.single("/mcp", &server.token, "tools/call", made).message();
    let blocks = made["result"]["content"].as_array().expect("content");
    let link = blocks.iter().find(|block| block["type"] == "resource_link").expect("a link");
    // More than fits into the buffers of both ends.
    let request = read_request(&server, &link["uri"]);
    wait_for_a_free_connection(&server);
    let mut slow = server.connect();
    for _ in 0..10 {
        slow.write_all(request.as_bytes()).expect("sent");
    }
    // Nobody else gets in until the slow client is out.
    wait_for_a_free_connection(&server);
    let mut bytes = Vec::new();
    let ended = slow.read_to_end(&mut bytes);
    assert!(bytes.len() < 40_000_000, "{ended:?}: all {} bytes came", bytes.len());
}

fn read_request(server: &Server, uri: &Value) -> String {
    let uri = uri.as_str().expect("an address");
    let params = json!({"uri": uri, "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params});
    let body = message.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: {MODERN}\r\nMcp-Method: resources/read\r\nMcp-Name: {uri}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.authority,
        server.token,
        body.len()
    )
}

fn wait_for_a_free_connection(server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    while server.ask("GET", "/live", &[], "").status != 200 {
        assert!(Instant::now() < deadline, "connections are not given back");
    }
}

#[test]
fn http_6_clients_of_a_trusted_balancer_are_counted_by_their_own_addresses() {
    for (is_trusted, proxies) in [(true, "[\"127.0.0.1\"]"), (false, "[\"192.0.2.200\"]")] {
        let settings = format!("[http]\nconnections-per-peer = 3\ntrusted-proxies = {proxies}\n");
        let server = Server::start(&settings, &json!({}));
        let opened = server.post("/mcp", &server.token, &[], &hello());
        let session = opened.header("mcp-session-id").expect("a session").to_owned();
        let status = |stream: &mut TcpStream| {
            let mut first = [0; 12];
            stream.read_exact(&mut first).expect("a response");
            String::from_utf8_lossy(&first[9..]).into_owned()
        };
        let open = |client: &str| open_stream(&server, &session, client);
        let mut streams = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while streams.len() < 3 {
            let mut stream = open("192.0.2.1");
            // Connections of earlier requests may still be closing.
            if status(&mut stream) == "200" {
                streams.push(stream);
            }
            assert!(Instant::now() < deadline, "no more streams: {}", streams.len());
        }
        assert_eq!(status(&mut open("192.0.2.1")), "503", "{is_trusted}");
        // What a client writes itself comes before what the balancer adds.
        assert_eq!(status(&mut open("192.0.2.9, 192.0.2.1")), "503", "{is_trusted}");
        let expected = if is_trusted { "200" } else { "503" };
        assert_eq!(status(&mut open("192.0.2.2")), expected, "{is_trusted}");
    }
}

fn open_stream(server: &Server, session: &str, client: &str) -> TcpStream {
    let bearer = format!("Bearer {}", server.token);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", session),
        ("X-Forwarded-For", client),
    ];
    server.open("GET", "/mcp", &headers, "")
}
