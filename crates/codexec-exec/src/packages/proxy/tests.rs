use std::net::SocketAddr;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::*;

/// Starts a server that sends this answer, followed by an echo of the request.
async fn server(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = vec![0; 4_096];
                while let Ok(count) = stream.read(&mut bytes).await {
                    if count == 0 {
                        break;
                    }
                    let _ = stream.write_all(answer).await;
                    let _ = stream.write_all(&bytes[..count]).await;
                }
            });
        }
    });
    address
}

fn reach(hosts: &[&str]) -> ProxyPolicy {
    let hosts =
        hosts.iter().map(|host| IndexHost::parse_canonical(host, 443).expect("a host")).collect();
    let (patience, idle) = (Duration::from_secs(30), Duration::from_secs(30));
    ProxyPolicy { hosts, route: ProxyRoute::default(), max_bytes: 1 << 20, patience, idle }
}

async fn proxy(reach: ProxyPolicy) -> (Proxy, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("bound");
    (Proxy::start(listener, reach), address)
}

async fn ask(proxy: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy).await.expect("connected");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

/// Returns the first line of a response, on a connection that stays open.
async fn first_line(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\n") {
        said.push(stream.read_u8().await.expect("an answer"));
    }
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_tunnel_leads_to_an_allowed_host_and_back() {
    let server = server(b"").await;
    let (proxy, address) = proxy(reach(&[&server.to_string()])).await;
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let request = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    assert_eq!(first_line(&mut stream).await, "HTTP/1.1 200 Connection established");
    stream.write_all(b"hello").await.expect("sent");
    let mut said = [0; 5];
    stream.read_exact(&mut said).await.expect("an echo");
    assert_eq!(&said, b"hello");
    assert!(proxy.observations().has_reached);
}

#[tokio::test]
async fn pkg_2_only_the_hosts_of_the_index_are_reached_however_they_are_written() {
    let server = server(b"").await;
    let port = server.port();
    let (proxy, address) = proxy(reach(&["index.example:443"])).await;
    for target in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("[::1]:{port}"),
        format!("0x7f000001:{port}"),
        format!("2130706433:{port}"),
        format!("index.example:{port}"),
        "index.example.evil.example:443".to_owned(),
        "evil.example:443".to_owned(),
    ] {
        let said = ask(address, &format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 403 "), "{target}: {said}");
    }
    for target in [
        "index.example",
        "index.example:443/",
        "user@index.example:443",
        "index.example.:443",
        "index.example:443:80",
        "index.example:0443",
        "index.example%00:443",
    ] {
        let said = ask(address, &format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{target}: {said}");
    }
    let seen = proxy.observations();
    assert!(!seen.has_reached && seen.unreachable.is_none(), "{seen:?}");
    assert_eq!(seen.refused.len(), MAX_REFUSED);
}

#[tokio::test]
async fn pkg_2_a_plain_request_is_written_anew() {
    let server = server(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n").await;
    let (_proxy, address) = proxy(reach(&[&server.to_string()])).await;
    let request = format!(
        "GET http://{server}/simple/six/?a=b HTTP/1.1\r\nHost: evil.example\r\nAccept: text/html\r\n\
         Proxy-Authorization: Basic eA==\r\nConnection: keep-alive, X\r\nUpgrade: h2c\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let wanted = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nGET /simple/six/?a=b HTTP/1.1\r\n\
         Host: {server}\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
    );
    let mut said = vec![0; wanted.len()];
    stream.read_exact(&mut said).await.expect("an answer");
    assert_eq!(String::from_utf8_lossy(&said), wanted);
}

#[tokio::test]
async fn pkg_2_nothing_is_smuggled_behind_or_between_the_lines() {
    let server = server(b"").await;
    let (proxy, address) = proxy(reach(&[&server.to_string()])).await;
    let get = format!("GET http://{server}/ HTTP/1.1\r\n");
    for request in [
        format!("{get}Content-Length: 5\r\n\r\nGET /"),
        format!("{get}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{get}X: y\nHost: evil\r\n\r\n"),
        format!("{get}X: y\rHost: evil\r\n\r\n"),
        format!("{get} folded\r\n\r\n"),
        format!("{get}No colon\r\n\r\n"),
        format!("{get}Bad name: x\r\n\r\n"),
        format!("{get}\r\nGET / HTTP/1.1\r\n\r\n"),
        format!("CONNECT {server} HTTP/1.1\r\n\r\nearly"),
        format!("GET http://{server}/ a HTTP/1.1\r\n\r\n"),
        format!("GET http://{server}/\t HTTP/1.1\r\n\r\n"),
        format!("POST http://{server}/ HTTP/1.1\r\n\r\n"),
        format!("PUT http://{server}/ HTTP/1.1\r\n\r\n"),
        format!("GET http://{server}/ HTTP/2.0\r\n\r\n"),
        format!("GET http://user@{server}/ HTTP/1.1\r\n\r\n"),
        format!("GET https://{server}/ HTTP/1.1\r\n\r\n"),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        "\r\n\r\n".to_owned(),
        format!("{get}{}\r\n", "X: y\r\n".repeat(100)),
        format!("{get}X: {}\r\n\r\n", "y".repeat(64 << 10)),
    ] {
        let said = ask(address, &request).await;
        let is_refused = said.starts_with("HTTP/1.1 400 ") || said.is_empty();
        assert!(is_refused, "{}: {said}", request.escape_debug().take(200).collect::<String>());
    }
    assert!(!proxy.observations().has_reached);
}

#[tokio::test]
async fn unreachable_hosts_are_reported() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("bound").local_addr().expect("bound");
    let (proxy, address) = proxy(reach(&[&gone.to_string()])).await;
    let said = ask(address, &format!("CONNECT {gone} HTTP/1.1\r\n\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 502 "), "{said}");
    let (host, _) = proxy.observations().unreachable.expect("remembered");
    assert_eq!(host, gone.to_string());
}

#[tokio::test]
async fn pkg_3_transferred_bytes_are_limited() {
    let server = server(b"").await;
    let reach = ProxyPolicy { max_bytes: 1_000, ..reach(&[&server.to_string()]) };
    let (proxy, address) = proxy(reach).await;
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(format!("CONNECT {server} HTTP/1.1\r\n\r\n").as_bytes()).await.expect("sent");
    first_line(&mut stream).await;
    stream.write_all(&[b'x'; 2_000]).await.expect("sent");
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    assert!(said.len() <= 1_000 && proxy.observations().is_too_much, "{}", said.len());
}

#[tokio::test]
async fn pkg_3_connections_are_limited() {
    let (_proxy, address) = proxy(reach(&[])).await;
    let mut held = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        held.push(TcpStream::connect(address).await.expect("connected"));
    }
    let said = ask(address, "").await;
    assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
    // A freed slot is used again.
    drop(held.pop());
    loop {
        let said = ask(address, "GET / HTTP/1.1\r\n\r\n").await;
        if said.starts_with("HTTP/1.1 400 ") {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pkg_3_silent_connections_time_out() {
    let server = server(b"").await;
    let (patience, idle) = (Duration::from_millis(200), Duration::from_millis(200));
    let reach = ProxyPolicy { patience, idle, ..reach(&[&server.to_string()]) };
    let (_proxy, address) = proxy(reach).await;
    let said = ask(address, "CONNECT").await;
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(format!("CONNECT {server} HTTP/1.1\r\n\r\n").as_bytes()).await.expect("sent");
    first_line(&mut stream).await;
    assert_eq!(stream.read(&mut [0]).await.ok(), Some(0), "silence ends a tunnel");
}

#[tokio::test]
async fn requests_go_through_the_machines_proxy_with_its_credentials() {
    let server = server(b"HTTP/1.1 200 OK\r\n\r\n").await;
    let between = format!("http://me:p%40ss@{server}");
    let route = ProxyRoute::parse(Some(&between), "straight.example").expect("a way");
    let (_proxy, address) =
        proxy(ProxyPolicy { route, ..reach(&["index.example:443", "plain.example:80"]) }).await;
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(b"CONNECT index.example:443 HTTP/1.1\r\n\r\n").await.expect("sent");
    assert_eq!(first_line(&mut stream).await, "HTTP/1.1 200 Connection established");
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(b"GET http://plain.example/x HTTP/1.1\r\n\r\n").await.expect("sent");
    let wanted = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nGET http://plain.example/x HTTP/1.1\r\n\
                  Host: plain.example\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\nConnection: close\r\n\r\n";
    let mut said = vec![0; wanted.len()];
    stream.read_exact(&mut said).await.expect("an answer");
    assert_eq!(String::from_utf8_lossy(&said), wanted);
    assert!(ProxyRoute::parse(Some("socks5://127.0.0.1:1"), "").is_err());
    assert!(!format!("{:?}", ProxyRoute::parse(Some(&between), "")).contains("cEBzcw"));
}
