use super::*;

async fn send(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("connected");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    answer
}

#[tokio::test]
async fn only_a_request_with_the_right_state_ends_the_wait() {
    let listener = CallbackListener::bind(None).await.expect("bound");
    let port = listener.port;
    // A browser's spare connection sends nothing.
    let _spare = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("connected");
    let waiting = tokio::spawn(listener.wait("right".to_owned()));
    for stranger in [
        "GET /favicon.ico HTTP/1.1\r\n\r\n",
        "GET /callback?code=evil&state=wrong HTTP/1.1\r\n\r\n",
        "GET /callback?code=evil&state=right&state=right HTTP/1.1\r\n\r\n",
        "GET /callback?error=evil HTTP/1.1\r\n\r\n",
        "POST /callback?code=evil&state=right HTTP/1.1\r\n\r\n",
        "GET http://elsewhere/other?code=evil&state=right HTTP/1.1\r\n\r\n",
        "\r\n\r\n",
    ] {
        let answer = send(port, stranger).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{stranger}: {answer}");
    }
    let request =
        "GET /callback?code=%3Cscript%3E&state=right&iss=https%3A%2F%2Fi HTTP/1.1\r\n\r\n";
    let answer = send(port, request).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains("script"), "{answer}");
    let callback = waiting.await.expect("joined").expect("a callback");
    let expected =
        Callback::Code { code: "<script>".to_owned(), issuer: Some("https://i".to_owned()) };
    assert_eq!(callback, expected);
}
