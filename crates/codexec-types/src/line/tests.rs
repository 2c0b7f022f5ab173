use super::*;

#[test]
fn lines_come_out_whatever_the_pieces() {
    let text = b"one\r\ntwo\n\nthree\nrest";
    for size in 1..text.len() {
        let mut buffer = LineBuffer::new(100);
        let mut lines = Vec::new();
        for piece in text.chunks(size) {
            buffer.push(piece);
            while let Some(line) = buffer.next_line() {
                lines.push(line);
            }
        }
        let whole = |text: &[u8]| Line::Whole(text.to_vec());
        assert_eq!(lines, [whole(b"one"), whole(b"two"), whole(b""), whole(b"three")]);
    }
}

#[test]
fn a_line_over_the_limit_is_dropped_and_the_next_one_is_read() {
    for size in [1, 3, 7, 1000] {
        let mut text = vec![b'x'; 100];
        text.extend_from_slice(b"\nnext\n");
        let mut buffer = LineBuffer::new(10);
        let mut lines = Vec::new();
        for piece in text.chunks(size) {
            buffer.push(piece);
            while let Some(line) = buffer.next_line() {
                lines.push(line);
            }
        }
        let dropped = Line::TooLong { head: vec![b'x'; 10], bytes: 100 };
        assert_eq!(lines, [dropped, Line::Whole(b"next".to_vec())], "{size}");
    }
}

#[test]
fn an_endless_line_costs_no_memory() {
    let mut buffer = LineBuffer::new(1 << 20);
    let piece = vec![b'x'; 64 << 10];
    for _ in 0..1_000 {
        buffer.push(&piece);
        assert_eq!(buffer.next_line(), None);
        assert!(buffer.held_bytes() <= 4 << 20, "{}", buffer.held_bytes());
    }
}
