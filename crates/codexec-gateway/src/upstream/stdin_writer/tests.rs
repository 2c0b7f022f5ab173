use super::*;

/// THREAT[UP-11]: nobody reads the other end of the pipe.
#[tokio::test]
async fn up_11_waiting_lines_are_limited_in_bytes_and_number() {
    // Before lines are queued, the pipe itself takes 64 KiB.
    for (bytes, tries) in [(1 << 20, 40), (1, 40_000)] {
        let (pipe, _reader) = tokio::net::unix::pipe::pipe().expect("a pipe");
        let (pipe, lines) = (Some(Arc::new(pipe)), VecDeque::new());
        let state = WriterState { pipe, lines, written: 0, bytes: 0, is_closing: false };
        let writer = StdinWriter { state: Mutex::new(state), more: Notify::new() };
        let text = "x".repeat(bytes);
        let sent = (0..tries).map_while(|_| writer.send(&text).ok()).count();
        assert!(sent > 10 && sent < tries, "{sent} lines of {bytes} bytes");
        assert!(matches!(writer.send(&text), Err(SendError::Backlog)));
        let state = writer.lock();
        assert!(state.lines.len() <= QUEUED_LINES && state.bytes <= QUEUED_BYTES);
    }
}
