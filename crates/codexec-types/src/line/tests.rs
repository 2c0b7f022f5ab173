use super::*;

fn lines(text: &[u8], size: usize, max_bytes: usize) -> Vec<BufferedLine> {
    let mut buffer = LineBuffer::new(max_bytes);
    let mut lines = Vec::new();
    for piece in text.chunks(size) {
        buffer.push(piece);
        while let Some(line) = buffer.next_line() {
            lines.push(line);
        }
    }
    lines
}

#[test]
fn lines_do_not_depend_on_how_the_stream_is_split() {
    let text = b"one\r\ntwo\n\nthree\nrest";
    let whole = |text: &[u8]| BufferedLine::Whole(text.to_vec());
    for size in 1..=text.len() {
        let expected = [whole(b"one"), whole(b"two"), whole(b""), whole(b"three")];
        assert_eq!(lines(text, size, 100), expected, "{size}");
    }
}

#[test]
fn a_line_over_the_limit_is_dropped_and_the_next_one_is_read() {
    let text = [&[b'x'; 100][..], b"\nnext\n"].concat();
    for size in 1..=text.len() {
        let found = lines(&text, size, 10);
        let [BufferedLine::TooLong { head }, BufferedLine::Whole(next)] = found.as_slice() else {
            panic!("{size}: {found:?}");
        };
        assert!(head.len() > 10 && head.iter().all(|&byte| byte == b'x'), "{size}: {head:?}");
        assert_eq!(next, b"next", "{size}");
    }
}

#[test]
fn an_endless_line_is_reported_once_and_costs_no_memory() {
    let mut buffer = LineBuffer::new(1 << 20);
    let piece = vec![b'x'; 64 << 10];
    let mut told = 0;
    for _ in 0..1_000 {
        buffer.push(&piece);
        told += usize::from(buffer.next_line().is_some());
        assert!(buffer.held_bytes() <= 4 << 20, "{}", buffer.held_bytes());
    }
    assert_eq!(told, 1);
}
