//! Threads play the host and the connections; the sockets are real.

use std::io::{Read as _, Write as _};
use std::thread::{self, JoinHandle};

use codexec_types::{Ask, CallCode, CallError, FRAME_HEADER_BYTES, Json, frame_length};

use super::*;

struct TestBroker {
    host: UnixStream,
    home: tempfile::TempDir,
    /// Dropped to end the broker.
    until: UnixStream,
    broker: JoinHandle<io::Result<()>>,
}

fn start_broker() -> TestBroker {
    let (host, theirs) = UnixStream::pair().expect("a pair");
    let home = tempfile::tempdir().expect("a directory");
    let ours = bind_listener_at(&home.path().join("listener")).expect("a listener");
    let (until, ended) = UnixStream::pair().expect("a pair");
    let broker = thread::spawn(move || Broker::new(theirs, ours).relay(&[ended.as_fd()], None));
    host.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    TestBroker { host, home, until, broker }
}

impl TestBroker {
    fn connect(&self) -> UnixStream {
        let connection =
            UnixStream::connect(self.home.path().join("listener")).expect("a connection");
        connection.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        connection
    }

    fn end(self) {
        drop(self.until);
        self.broker.join().expect("no panic").expect("a clean end");
    }
}

fn body(socket: &mut UnixStream) -> Option<Vec<u8>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    socket.read_exact(&mut header).ok()?;
    let mut body = vec![0; frame_length(header).expect("a length")];
    socket.read_exact(&mut body).ok()?;
    Some(body)
}

fn read_frame(host: &mut UnixStream) -> FromGuest {
    FromGuest::decode(&body(host).expect("a frame")).expect("a known frame")
}

fn read_answer(socket: &mut UnixStream) -> Option<AskAnswer> {
    match ToGuest::decode(&body(socket)?).expect("a known frame") {
        ToGuest::Answer(answer) => Some(answer),
        ToGuest::Start(_) | ToGuest::Cell(_) | ToGuest::Interrupt => panic!("not an answer"),
    }
}

fn json(text: String) -> Json {
    Json::parse(text).expect("json")
}

fn ask(id: u32, text: &str) -> FromGuest {
    FromGuest::Ask { id, ask: Ask::Schema { name: text.to_owned() } }
}

fn send(socket: &mut UnixStream, frame: &FromGuest) {
    socket.write_all(&frame.encode().expect("a frame")).expect("an open socket");
}

/// Answers an ask with the name it asked for.
fn reply(host: &mut UnixStream, frame: FromGuest) {
    let FromGuest::Ask { id, ask: Ask::Schema { name } } = frame else { panic!("{frame:?}") };
    let result = if name == "bad" {
        Err(CallError::new(CallCode::ToolNotFound, name))
    } else {
        Ok(json(format!("{name:?}")))
    };
    let frame = ToGuest::Answer(AskAnswer { id, result });
    host.write_all(&frame.encode().expect("a frame")).expect("an open socket");
}

fn is_closed(connection: &mut UnixStream) -> bool {
    !matches!(connection.read(&mut [0]), Ok(1..))
}

#[test]
fn twenty_connections_get_their_own_answers() {
    const CONNECTIONS: usize = 20;
    let mut broker = start_broker();
    let guests: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let mut connection = broker.connect();
            thread::spawn(move || {
                for round in 0..5 {
                    // All connections use the same ids.
                    let text = format!("{number}/{round}");
                    send(&mut connection, &ask(round, &text));
                    let answer = read_answer(&mut connection).expect("an answer");
                    assert_eq!(answer.id, round);
                    assert_eq!(answer.result.expect("a result").text(), format!("{text:?}"));
                }
            })
        })
        .collect();
    for _ in 0..5 {
        let asks: Vec<_> = (0..CONNECTIONS).map(|_| read_frame(&mut broker.host)).collect();
        for ask in asks.into_iter().rev() {
            reply(&mut broker.host, ask);
        }
    }
    for guest in guests {
        guest.join().expect("no panic");
    }
    broker.end();
}

#[test]
fn many_asks_on_one_connection_and_refusals() {
    let mut broker = start_broker();
    let mut connection = broker.connect();
    send(&mut connection, &FromGuest::Progress("half".to_owned()));
    send(&mut connection, &ask(7, "bad"));
    send(&mut connection, &ask(8, "x"));
    assert_eq!(read_frame(&mut broker.host), FromGuest::Progress("half".to_owned()));
    let asks = [read_frame(&mut broker.host), read_frame(&mut broker.host)];
    for ask in asks.into_iter().rev() {
        reply(&mut broker.host, ask);
    }
    assert_eq!(read_answer(&mut connection).expect("an answer").id, 8);
    let refused = read_answer(&mut connection).expect("an answer");
    assert_eq!((refused.id, refused.result.expect_err("refused").message.as_str()), (7, "bad"));
    broker.end();
}

#[test]
fn a_frame_that_is_not_allowed_closes_only_its_connection() {
    let mut broker = start_broker();
    let mut good = broker.connect();
    let frame =
        |text: &[u8]| [&u32::try_from(text.len()).expect("short").to_le_bytes(), text].concat();
    let bad = [
        frame(b"\"compiled\""),
        frame(b"{\"returned\":1}"),
        frame(b"{\"threw\":{}}"),
        frame(b"garbage"),
        frame(b""),
        frame(b"{\"ask\":{\"id\":1,\"ask\":{\"unknown\":{}}}}"),
        vec![255; 4],
        vec![255; 1 << 16],
        frame(&[b'['; 100_000]),
    ];
    for bytes in bad {
        let mut connection = broker.connect();
        // The broker may close the connection before all bytes are written.
        let _ = connection.write_all(&bytes);
        assert!(is_closed(&mut connection), "{:?}", bytes.get(..20));
    }
    send(&mut good, &ask(1, "x"));
    let frame = read_frame(&mut broker.host);
    reply(&mut broker.host, frame);
    assert_eq!(read_answer(&mut good).expect("an answer").id, 1);
    broker.end();
}

#[test]
fn incomplete_frames_do_not_block_other_connections() {
    let mut broker = start_broker();
    let (mut slow, mut quick) = (broker.connect(), broker.connect());
    let bytes = ask(3, "slow").encode().expect("a frame");
    let (first, rest) = bytes.split_at(7);
    slow.write_all(first).expect("an open connection");
    send(&mut quick, &ask(3, "quick"));
    let frame = read_frame(&mut broker.host);
    reply(&mut broker.host, frame);
    assert_eq!(
        read_answer(&mut quick).expect("an answer").result,
        Ok(json("\"quick\"".to_owned()))
    );
    for byte in rest {
        slow.write_all(&[*byte]).expect("an open connection");
    }
    let frame = read_frame(&mut broker.host);
    reply(&mut broker.host, frame);
    assert_eq!(read_answer(&mut slow).expect("an answer").result, Ok(json("\"slow\"".to_owned())));
    broker.end();
}

#[test]
fn a_closed_connection_drops_only_its_own_asks() {
    let mut broker = start_broker();
    let mut early = broker.connect();
    send(&mut early, &ask(1, "early"));
    let unwanted = read_frame(&mut broker.host);
    drop(early);
    let mut late = broker.connect();
    send(&mut late, &ask(1, "late"));
    let wanted = read_frame(&mut broker.host);
    reply(&mut broker.host, unwanted);
    reply(&mut broker.host, wanted);
    assert_eq!(read_answer(&mut late).expect("an answer").result, Ok(json("\"late\"".to_owned())));
    broker.end();
}

#[test]
fn frames_of_processes_that_have_exited_are_drained() {
    let (mut host, theirs) = UnixStream::pair().expect("a pair");
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("listener");
    let mut broker = Broker::new(theirs, bind_listener_at(&path).expect("a listener"));
    for number in 0..20 {
        let mut connection = UnixStream::connect(&path).expect("a connection");
        send(&mut connection, &FromGuest::Progress(number.to_string()));
    }
    broker.drain().expect("drained");
    for number in 0..20 {
        assert_eq!(read_frame(&mut host), FromGuest::Progress(number.to_string()));
    }
}

#[test]
fn more_than_64_connections_are_closed() {
    let mut broker = start_broker();
    let mut connections: Vec<_> = (0..MAX_CONNECTIONS).map(|_| broker.connect()).collect();
    let mut extra: Vec<_> = (0..10).map(|_| broker.connect()).collect();
    assert!(extra.iter_mut().all(is_closed));
    let last = connections.last_mut().expect("a connection");
    send(last, &ask(1, "x"));
    let frame = read_frame(&mut broker.host);
    reply(&mut broker.host, frame);
    assert!(read_answer(last).is_some());
    drop(connections);
    // New connections are accepted once the broker has seen the old ones close.
    let is_served = (0..1_000).any(|_| {
        let mut connection = broker.connect();
        let is_sent = connection.write_all(&ask(1, "y").encode().expect("a frame")).is_ok();
        is_sent && !is_closed_now(&mut connection, &mut broker.host)
    });
    assert!(is_served);
    broker.end();
}

fn is_closed_now(connection: &mut UnixStream, host: &mut UnixStream) -> bool {
    host.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let Some(bytes) = body(host) else { return true };
    reply(host, FromGuest::decode(&bytes).expect("a known frame"));
    read_answer(connection).is_none()
}

#[test]
fn a_host_that_does_not_read_pauses_the_connections_and_loses_nothing() {
    const ASKS: u32 = 200;
    let mut broker = start_broker();
    let mut connection = broker.connect();
    let text = "x".repeat(64 << 10);
    let long = text.clone();
    let guest = thread::spawn(move || {
        let mut own = connection.try_clone().expect("a connection");
        let writer = thread::spawn(move || {
            for id in 0..ASKS {
                send(&mut own, &ask(id, &long));
            }
        });
        let ids: Vec<u32> =
            (0..ASKS).map(|_| read_answer(&mut connection).expect("an answer").id).collect();
        writer.join().expect("no panic");
        ids
    });
    let asks: Vec<_> = (0..ASKS).map(|_| read_frame(&mut broker.host)).collect();
    for ask in asks {
        reply(&mut broker.host, ask);
    }
    assert_eq!(guest.join().expect("no panic"), (0..ASKS).collect::<Vec<_>>());
    broker.end();
}

#[test]
fn a_connection_that_does_not_read_is_closed_at_32_mib() {
    let mut broker = start_broker();
    let mut connection = broker.connect();
    let big = format!("\"{}\"", "x".repeat(8 << 20));
    for id in 0..6 {
        send(&mut connection, &ask(id, "x"));
    }
    for _ in 0..6 {
        let FromGuest::Ask { id, .. } = read_frame(&mut broker.host) else { panic!("an ask") };
        let frame = ToGuest::Answer(AskAnswer { id, result: Ok(json(big.clone())) });
        broker.host.write_all(&frame.encode().expect("a frame")).expect("an open socket");
    }
    // The broker still serves; the connection ends in the middle of an answer.
    let mut other = broker.connect();
    send(&mut other, &ask(1, "y"));
    let frame = read_frame(&mut broker.host);
    reply(&mut broker.host, frame);
    assert!(read_answer(&mut other).is_some());
    let mut read = Vec::new();
    connection.read_to_end(&mut read).expect("the end");
    assert!(read.len() < 8 << 20);
    broker.end();
}

#[test]
fn the_broker_ends_when_the_host_is_gone() {
    let TestBroker { host, home: _home, until: _until, broker } = start_broker();
    drop(host);
    broker.join().expect("no panic").expect("a clean end");
}
