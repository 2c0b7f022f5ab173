//! Clients that do not read what they asked for, and clients behind a proxy.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use super::server::Server;
use crate::attacks::host::{memory_kib, within};
use crate::support::PATIENCE;

/// More than the kernel keeps for a client that reads nothing.
const PIPELINED: usize = 3_000;

#[test]
fn http_2_clients_that_read_nothing_are_cut_off() {
    let settings = "[http]\nwrite-timeout-s = 1\nconnections-per-peer = 2\n";
    let server = Server::start(settings, &json!({}));
    server.wait_until_ready();
    let before = memory_kib(server.child.id(), "VmRSS");
    let mut greedy: Vec<TcpStream> = (0..2).map(|_| server.connect()).collect();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: {}\r\nX-API-Key: {}\r\n\r\n",
        server.authority, server.token
    );
    std::thread::scope(|scope| {
        for stream in &mut greedy {
            let text = request.repeat(PIPELINED);
            // Writing ends when the server closes the connection.
            scope.spawn(move || stream.write_all(text.as_bytes()).is_err());
        }
        // Both places are free again, though nobody has read a byte.
        let is_served = || server.ask("GET", "/live", &[], "").status == 200;
        assert!(within(PATIENCE, || server.ask("GET", "/live", &[], "").status == 503));
        assert!(within(PATIENCE, is_served), "the places are not given back");
    });
    let grown = memory_kib(server.child.id(), "VmRSS").saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB");
}

/// Forwards one connection after the other, as a proxy that names its client does.
fn start_proxy(target: String, client: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let target = target.clone();
            std::thread::spawn(move || forward(stream, &target, client));
        }
    });
    address
}

fn forward(mut stream: TcpStream, target: &str, client: &str) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8(head).expect("a head");
    let (line, rest) = head.split_once("\r\n").expect("a line");
    let mut server = TcpStream::connect(target).expect("it listens");
    let named = format!("{line}\r\nX-Forwarded-For: 203.0.113.1, {client}\r\n{rest}");
    server.write_all(named.as_bytes()).expect("sent");
    let (mut body, mut to_server) =
        (stream.try_clone().expect("one"), server.try_clone().expect("one"));
    std::thread::spawn(move || std::io::copy(&mut body, &mut to_server));
    let _ = std::io::copy(&mut server, &mut stream);
}

#[test]
fn http_6_clients_behind_a_proxy_have_their_own_counts() {
    let settings = "[http]\nconnections-per-peer = 1\ntrusted-proxies = [\"127.0.0.1\"]\nhosts = [\"code.example\"]\n";
    let server = Server::start(settings, &json!({}));
    server.wait_until_ready();
    let ann = start_proxy(server.authority.clone(), "192.0.2.1");
    let bob = start_proxy(server.authority.clone(), "192.0.2.2");
    let connect = |proxy: &str, path: &str, extra: &str| {
        let mut stream = TcpStream::connect(proxy).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let token = &server.token;
        let head = format!(
            "{path} HTTP/1.1\r\nHost: code.example\r\nConnection: close\r\nX-API-Key: {token}\r\n{extra}\r\n"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        stream
    };
    let status = |proxy: &str| {
        let mut first = [0; 12];
        connect(proxy, "GET /live", "").read_exact(&mut first).expect("a response");
        String::from_utf8_lossy(&first[9..]).into_owned()
    };
    assert_eq!((status(&ann), status(&bob)), ("200".to_owned(), "200".to_owned()));
    // One request of Ann's that stays open uses up her count, and not Bob's.
    let body = r#"{"code": "while (true) {}"}"#;
    let headers =
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let _running = connect(&ann, "POST /api/v1/code/exec", &headers);
    assert!(within(PATIENCE, || status(&ann) == "503"), "she is not counted");
    assert_eq!(status(&bob), "200");
}
