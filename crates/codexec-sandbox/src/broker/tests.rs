//! Host and lines are played by threads; the sockets are real.

use std::io::{Read as _, Write as _};
use std::thread::{self, JoinHandle};

use codexec_types::{Ask, CallCode, CallError, FRAME_HEADER_BYTES, Json, frame_length};

use super::*;

struct World {
    host: UnixStream,
    home: tempfile::TempDir,
    /// Dropped to end the broker.
    until: UnixStream,
    broker: JoinHandle<io::Result<()>>,
}

fn world() -> World {
    let (host, theirs) = UnixStream::pair().expect("a pair");
    let home = tempfile::tempdir().expect("a directory");
    let ours = door_at(&home.path().join("door")).expect("a door");
    let (until, ended) = UnixStream::pair().expect("a pair");
    let broker = thread::spawn(move || Broker::new(theirs, ours).relay(&[ended.as_fd()], None));
    host.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    World { host, home, until, broker }
}

impl World {
    fn line(&self) -> UnixStream {
        let line = UnixStream::connect(self.home.path().join("door")).expect("a line");
        line.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        line
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

fn hear(host: &mut UnixStream) -> FromGuest {
    FromGuest::decode(&body(host).expect("a frame")).expect("a known frame")
}

fn answer(socket: &mut UnixStream) -> Option<AskAnswer> {
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

fn say(socket: &mut UnixStream, frame: &FromGuest) {
    socket.write_all(&frame.encode().expect("a frame")).expect("an open socket");
}

/// Says to each ask what it asked for.
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

fn is_closed(line: &mut UnixStream) -> bool {
    !matches!(line.read(&mut [0]), Ok(1..))
}

#[test]
fn twenty_lines_get_their_own_answers() {
    const LINES: usize = 20;
    let mut world = world();
    let guests: Vec<_> = (0..LINES)
        .map(|number| {
            let mut line = world.line();
            thread::spawn(move || {
                for round in 0..5 {
                    // All lines use the same ids.
                    let text = format!("{number}/{round}");
                    say(&mut line, &ask(round, &text));
                    let answer = answer(&mut line).expect("an answer");
                    assert_eq!(answer.id, round);
                    assert_eq!(answer.result.expect("a result").text(), format!("{text:?}"));
                }
            })
        })
        .collect();
    for _ in 0..5 {
        let asks: Vec<_> = (0..LINES).map(|_| hear(&mut world.host)).collect();
        for ask in asks.into_iter().rev() {
            reply(&mut world.host, ask);
        }
    }
    for guest in guests {
        guest.join().expect("no panic");
    }
    world.end();
}

#[test]
fn many_asks_on_one_line_and_refusals() {
    let mut world = world();
    let mut line = world.line();
    say(&mut line, &FromGuest::Progress("half".to_owned()));
    say(&mut line, &ask(7, "bad"));
    say(&mut line, &ask(8, "x"));
    assert_eq!(hear(&mut world.host), FromGuest::Progress("half".to_owned()));
    let asks = [hear(&mut world.host), hear(&mut world.host)];
    for ask in asks.into_iter().rev() {
        reply(&mut world.host, ask);
    }
    assert_eq!(answer(&mut line).expect("an answer").id, 8);
    let refused = answer(&mut line).expect("an answer");
    assert_eq!((refused.id, refused.result.expect_err("refused").message.as_str()), (7, "bad"));
    world.end();
}

#[test]
fn what_a_line_may_not_say_closes_it_alone() {
    let mut world = world();
    let mut good = world.line();
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
        let mut line = world.line();
        // It may be closed before all is written.
        let _ = line.write_all(&bytes);
        assert!(is_closed(&mut line), "{:?}", bytes.get(..20));
    }
    say(&mut good, &ask(1, "x"));
    let frame = hear(&mut world.host);
    reply(&mut world.host, frame);
    assert_eq!(answer(&mut good).expect("an answer").id, 1);
    world.end();
}

#[test]
fn half_frames_wait_and_hold_up_nobody() {
    let mut world = world();
    let (mut slow, mut quick) = (world.line(), world.line());
    let bytes = ask(3, "slow").encode().expect("a frame");
    let (first, rest) = bytes.split_at(7);
    slow.write_all(first).expect("an open line");
    say(&mut quick, &ask(3, "quick"));
    let frame = hear(&mut world.host);
    reply(&mut world.host, frame);
    assert_eq!(answer(&mut quick).expect("an answer").result, Ok(json("\"quick\"".to_owned())));
    for byte in rest {
        slow.write_all(&[*byte]).expect("an open line");
    }
    let frame = hear(&mut world.host);
    reply(&mut world.host, frame);
    assert_eq!(answer(&mut slow).expect("an answer").result, Ok(json("\"slow\"".to_owned())));
    world.end();
}

#[test]
fn a_line_that_leaves_takes_only_its_own_asks_along() {
    let mut world = world();
    let mut early = world.line();
    say(&mut early, &ask(1, "early"));
    let unwanted = hear(&mut world.host);
    drop(early);
    let mut late = world.line();
    say(&mut late, &ask(1, "late"));
    let wanted = hear(&mut world.host);
    reply(&mut world.host, unwanted);
    reply(&mut world.host, wanted);
    assert_eq!(answer(&mut late).expect("an answer").result, Ok(json("\"late\"".to_owned())));
    world.end();
}

#[test]
fn more_than_64_lines_are_closed() {
    let mut world = world();
    let mut lines: Vec<_> = (0..MAX_LINES).map(|_| world.line()).collect();
    let mut extra: Vec<_> = (0..10).map(|_| world.line()).collect();
    assert!(extra.iter_mut().all(is_closed));
    let last = lines.last_mut().expect("a line");
    say(last, &ask(1, "x"));
    let frame = hear(&mut world.host);
    reply(&mut world.host, frame);
    assert!(answer(last).is_some());
    drop(lines);
    // Room again, as soon as the broker has seen them close.
    let is_served = (0..1_000).any(|_| {
        let mut line = world.line();
        let is_said = line.write_all(&ask(1, "y").encode().expect("a frame")).is_ok();
        is_said && !is_closed_now(&mut line, &mut world.host)
    });
    assert!(is_served);
    world.end();
}

fn is_closed_now(line: &mut UnixStream, host: &mut UnixStream) -> bool {
    host.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let Some(bytes) = body(host) else { return true };
    reply(host, FromGuest::decode(&bytes).expect("a known frame"));
    answer(line).is_none()
}

#[test]
fn a_host_that_does_not_read_stops_the_lines_and_nothing_is_lost() {
    const ASKS: u32 = 200;
    let mut world = world();
    let mut line = world.line();
    let text = "x".repeat(64 << 10);
    let long = text.clone();
    let guest = thread::spawn(move || {
        let mut own = line.try_clone().expect("a line");
        let writer = thread::spawn(move || {
            for id in 0..ASKS {
                say(&mut own, &ask(id, &long));
            }
        });
        let ids: Vec<u32> = (0..ASKS).map(|_| answer(&mut line).expect("an answer").id).collect();
        writer.join().expect("no panic");
        ids
    });
    let asks: Vec<_> = (0..ASKS).map(|_| hear(&mut world.host)).collect();
    for ask in asks {
        reply(&mut world.host, ask);
    }
    assert_eq!(guest.join().expect("no panic"), (0..ASKS).collect::<Vec<_>>());
    world.end();
}

#[test]
fn a_line_that_does_not_read_is_closed_at_32_mib() {
    let mut world = world();
    let mut line = world.line();
    let big = format!("\"{}\"", "x".repeat(8 << 20));
    for id in 0..6 {
        say(&mut line, &ask(id, "x"));
    }
    for _ in 0..6 {
        let FromGuest::Ask { id, .. } = hear(&mut world.host) else { panic!("an ask") };
        let frame = ToGuest::Answer(AskAnswer { id, result: Ok(json(big.clone())) });
        world.host.write_all(&frame.encode().expect("a frame")).expect("an open socket");
    }
    // The broker still serves; the line ends in the middle of an answer.
    let mut other = world.line();
    say(&mut other, &ask(1, "y"));
    let frame = hear(&mut world.host);
    reply(&mut world.host, frame);
    assert!(answer(&mut other).is_some());
    let mut read = Vec::new();
    line.read_to_end(&mut read).expect("the end");
    assert!(read.len() < 8 << 20);
    world.end();
}

#[test]
fn a_host_that_leaves_ends_it() {
    let World { host, home: _home, until: _until, broker } = world();
    drop(host);
    broker.join().expect("no panic").expect("a clean end");
}
