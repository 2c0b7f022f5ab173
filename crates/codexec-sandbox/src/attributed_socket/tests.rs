use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use super::*;

/// THREAT[SES-8]: a child inherits the descriptor, but not the writer's process id.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own processes")]
fn ses_8_reads_return_the_process_id_of_the_writer() {
    for kind in [SockType::Stream, SockType::SeqPacket] {
        let (ours, theirs) = attributed_pair(kind).expect("a pair");
        let mut mine = UnixStream::from(theirs.try_clone().expect("a copy"));
        mine.write_all(b"mine").expect("written");
        let mut printf = Command::new("printf")
            .arg("theirs")
            .stdout(Stdio::from(theirs))
            .spawn()
            .expect("a child");
        let child = i32::try_from(printf.id()).expect("an id");
        let mut messages = Vec::new();
        while messages.len() < 2 {
            let mut buffer = [0; 64];
            match read_attributed(ours.as_fd(), &mut buffer) {
                Ok((count, writer)) => messages.push((buffer[..count].to_vec(), writer)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        }
        let own = i32::try_from(std::process::id()).expect("an id");
        assert_eq!(messages, [(b"mine".to_vec(), own), (b"theirs".to_vec(), child)]);
        printf.wait().expect("it ends");
    }
}
