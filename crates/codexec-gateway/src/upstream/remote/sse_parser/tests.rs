use super::*;

/// Feeds the stream byte by byte: how it is split must not matter.
fn parse(stream: &[u8], max_bytes: usize) -> (Vec<String>, SseParser) {
    let mut parser = SseParser::new(max_bytes);
    let mut seen = Vec::new();
    for byte in stream {
        parser.push(&[*byte]);
        while let Some(item) = parser.next() {
            seen.push(match item {
                SseItem::Event(event) => {
                    format!("{}:{}", event.kind, String::from_utf8_lossy(&event.data))
                }
                SseItem::TooLong(head) => format!("too long:{}", String::from_utf8_lossy(&head)),
            });
        }
    }
    (seen, parser)
}

#[test]
fn events_are_parsed() {
    let check = |stream: &str, expected: &[&str]| {
        assert_eq!(parse(stream.as_bytes(), 100).0, expected, "{stream:?}");
    };
    check("data: {}\n\n", &[":{}"]);
    check("\u{feff}data:a\r\n\r\ndata: b\r\n\r\n", &[":a", ":b"]);
    check("event: endpoint\ndata: /messages\n\n", &["endpoint:/messages"]);
    check(": keep alive\n\ndata: a\ndata: b\n\n", &[":a\nb"]);
    check("id: 7\n\nretry: 20\n\n", &[]);
    check("data: never ended\n", &[]);
    check("data\ndata: a\nunknown: x\n\n", &[":a"]);
}

#[test]
fn resume_id_and_delay_are_kept() {
    let (_, parser) = parse(b"id: 7\nretry: 20\ndata: a\n\nid: bad\0id\nretry: soon\n\n", 100);
    assert_eq!(parser.last_id.as_deref(), Some("7"));
    assert_eq!(parser.retry, Some(Duration::from_millis(20)));
}

#[test]
fn rem_1_endless_events_use_bounded_memory() {
    let long = [b"data: {\"id\":5,".as_slice(), &[b'x'; 5_000], b"\n\ndata: b\n\n"].concat();
    let (seen, parser) = parse(&long, 1_000);
    assert!(seen[0].starts_with("too long: {\"id\":5,"), "{seen:?}");
    assert_eq!(seen[1], ":b");
    assert!(parser.lines.held_bytes() < 10_000);

    let many = [b"data: 0123456789\n".repeat(1_000), b"\ndata: b\n\n".to_vec()].concat();
    let (seen, _) = parse(&many, 1_000);
    assert!(seen[0].starts_with("too long:0123456789"), "{seen:?}");
    assert_eq!(seen[1], ":b");
}
