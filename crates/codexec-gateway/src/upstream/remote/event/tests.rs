use super::*;

/// Feeds the stream byte by byte: how it is split must not matter.
fn parse(stream: &[u8], max_bytes: usize) -> (Vec<String>, Events) {
    let mut events = Events::new(max_bytes);
    let mut seen = Vec::new();
    for byte in stream {
        events.push(&[*byte]);
        while let Some(parsed) = events.next() {
            seen.push(match parsed {
                Parsed::Event(event) => {
                    format!("{}:{}", event.kind, String::from_utf8_lossy(&event.data))
                }
                Parsed::TooLong(head) => format!("too long:{}", String::from_utf8_lossy(&head)),
            });
        }
    }
    (seen, events)
}

#[test]
fn events_are_cut_out_of_the_stream() {
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
fn where_to_resume_is_remembered() {
    let (_, events) = parse(b"id: 7\nretry: 20\ndata: a\n\nid: bad\0id\nretry: soon\n\n", 100);
    assert_eq!(events.last_id.as_deref(), Some("7"));
    assert_eq!(events.retry, Some(Duration::from_millis(20)));
}

#[test]
fn rem_1_an_event_without_end_costs_no_memory() {
    let long = [b"data: {\"id\":5,".as_slice(), &[b'x'; 5_000], b"\n\ndata: b\n\n"].concat();
    let (seen, events) = parse(&long, 1_000);
    assert!(seen[0].starts_with("too long: {\"id\":5,"), "{seen:?}");
    assert_eq!(seen[1], ":b");
    assert!(events.lines.held_bytes() < 10_000);

    let many = [b"data: 0123456789\n".repeat(1_000), b"\ndata: b\n\n".to_vec()].concat();
    let (seen, _) = parse(&many, 1_000);
    assert!(seen[0].starts_with("too long:0123456789"), "{seen:?}");
    assert_eq!(seen[1], ":b");
}
