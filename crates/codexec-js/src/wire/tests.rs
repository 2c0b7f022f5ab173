use std::io::Write as _;
use std::thread;

use codexec_types::{CallCode, OutputStream};

use super::*;

fn answer(id: u32, text: &str) -> Vec<u8> {
    let result = Ok(Json::parse(text.to_owned()).expect("json"));
    ToGuest::Answer(AskAnswer { id, result }).encode().expect("a frame")
}

fn pair() -> (UnixStream, Wire) {
    let (host, socket) = UnixStream::pair().expect("a socket pair");
    (host, Wire::new(socket))
}

#[test]
fn answers_are_kept_until_somebody_asks_for_them() {
    let (mut host, mut wire) = pair();
    for (id, text) in [(1, "1"), (2, "2"), (3, "3")] {
        host.write_all(&answer(id, text)).expect("a listening guest");
    }
    let text = |result: Result<Json, CallError>| result.expect("an answer").text().to_owned();
    assert_eq!(text(wire.wait_for(2).expect("a host").expect("no interrupt")), "2");
    let next = |wire: &mut Wire| wire.next_answer(Some(Instant::now())).expect("a host");
    assert_eq!(next(&mut wire).map(|answer| answer.id), Some(1));
    assert_eq!(next(&mut wire).map(|answer| answer.id), Some(3));
    assert_eq!(next(&mut wire), None);
}

#[test]
fn a_frame_in_pieces_is_one_frame() {
    let (mut host, mut wire) = pair();
    let error = CallError::new(CallCode::UpstreamError, "no");
    let frame = ToGuest::Answer(AskAnswer { id: 9, result: Err(error.clone()) });
    let bytes = frame.encode().expect("a frame");
    for byte in &bytes {
        host.write_all(&[*byte]).expect("a listening guest");
        if *byte != *bytes.last().expect("a byte") {
            assert_eq!(wire.next_answer(Some(Instant::now())).expect("a host"), None);
        }
    }
    assert_eq!(wire.wait_for(9).expect("a host"), Some(Err(error)));
}

#[test]
fn writing_also_reads_to_avoid_deadlock() {
    let (mut host, mut wire) = pair();
    let big = format!("\"{}\"", "x".repeat(4 << 20));
    let sent = big.clone();
    // Writes everything before it reads anything.
    let peer = thread::spawn(move || {
        host.write_all(&answer(1, &sent)).expect("a listening guest");
        let mut header = [0; FRAME_HEADER_BYTES];
        host.read_exact(&mut header).expect("a frame");
        let mut body = vec![0; frame_length(header).expect("a length")];
        host.read_exact(&mut body).expect("a body");
        FromGuest::decode(&body).expect("a frame that says something")
    });
    let frame = FromGuest::Output { stream: OutputStream::Out, text: "y".repeat(4 << 20) };
    wire.send(&frame).expect("a host");
    assert_eq!(
        wire.wait_for(1).expect("a host").expect("no interrupt").expect("an answer").text(),
        big
    );
    assert_eq!(peer.join().expect("a peer"), frame);
}

#[test]
fn a_socket_that_does_not_block_is_waited_for() {
    let (mut host, socket) = UnixStream::pair().expect("a socket pair");
    socket.set_nonblocking(true).expect("a socket");
    let mut wire = Wire::new(socket);
    let peer = thread::spawn(move || {
        host.write_all(&answer(1, "1")).expect("a listening guest");
        host
    });
    assert_eq!(
        wire.wait_for(1).expect("a host").expect("no interrupt").expect("an answer").text(),
        "1"
    );
    peer.join().expect("a peer");
}

#[test]
fn invalid_frames_and_end_of_file_end_the_guest() {
    for bytes in [&[255, 255, 255, 255][..], &[2, 0, 0, 0, b'{', b'}'], &[]] {
        let (mut host, mut wire) = pair();
        host.write_all(bytes).expect("a listening guest");
        drop(host);
        assert!(wire.receive_job().is_err(), "{bytes:?}");
    }
}

#[test]
fn an_interrupt_means_the_cell_before_it() {
    let (mut host, mut wire) = pair();
    let cell = |number| Cell {
        number,
        key: "key".to_owned(),
        code: "1".to_owned(),
        input: Json::null(),
        args: Vec::new(),
    };
    let say = |host: &mut UnixStream, frame: ToGuest| {
        host.write_all(&frame.encode().expect("a frame")).expect("a listening guest");
    };
    say(&mut host, ToGuest::Interrupt);
    say(&mut host, ToGuest::Cell(cell(2)));
    assert_eq!(wire.receive_cell().expect("a host").number, 2);
    assert!(!wire.poll_interrupt().expect("a host"), "this one came too late");
    say(&mut host, ToGuest::Interrupt);
    assert!(wire.poll_interrupt().expect("a host"));
    assert_eq!(wire.wait_for(1).expect("a host"), None);
    assert_eq!(wire.next_answer(None).expect("a host"), None);
    say(&mut host, ToGuest::Cell(cell(3)));
    say(&mut host, ToGuest::Interrupt);
    assert_eq!(wire.receive_cell().expect("a host").number, 3);
    assert!(wire.is_interrupted());
}
