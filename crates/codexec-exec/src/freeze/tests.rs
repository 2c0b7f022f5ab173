use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use super::*;

/// A shell that plays init: its children are the guest's processes.
struct Init(Child);

impl Init {
    #[expect(clippy::disallowed_methods, reason = "a test's own processes")]
    fn start(script: &str) -> Init {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        Init(child)
    }

    fn freezer(&self) -> Freezer {
        Freezer::new(&[i32::try_from(self.0.id()).expect("an id")])
    }

    fn children(&self) -> Vec<i32> {
        let init = i32::try_from(self.0.id()).expect("an id");
        tree(&[init]).into_iter().filter(|pid| *pid != init).collect()
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        for pid in self.children() {
            if let Ok(process) = GuestProcess::open(pid) {
                process.kill();
            }
        }
        let _ = self.0.stdin.take().map(|mut stdin| stdin.write_all(b"\n"));
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const FORKS: &str = "(while :; do (:); done) & (sleep 100) & echo ready; read x";

#[test]
fn all_processes_stand_still_and_go_on() {
    let init = Init::start(FORKS);
    let freezer = init.freezer();
    let frozen = freezer.freeze().expect("frozen");
    assert!(frozen.members.len() >= 2, "{frozen:?}");
    for pid in init.children() {
        let state = Stat::read(&format!("/proc/{pid}/stat")).expect("there").state;
        assert!(matches!(state, b'T' | b'Z'), "{}", char::from(state));
    }
    assert!(frozen.is_still());
    let pids: Vec<i32> = frozen.members.keys().copied().collect();
    drop(frozen);
    for pid in pids {
        while Stat::read(&format!("/proc/{pid}/stat")).is_some_and(|stat| stat.state == b'T') {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_process_that_was_woken_is_noticed() {
    let init = Init::start(FORKS);
    let frozen = init.freezer().freeze().expect("frozen");
    assert!(frozen.is_still());
    for member in frozen.members.values() {
        member.process.resume();
    }
    while frozen.is_still() {
        std::thread::yield_now();
    }
    // Also after all of them have stopped again.
    for member in frozen.members.values() {
        member.process.stop();
    }
    assert!(!frozen.is_still());
}

#[test]
fn what_the_guest_has_stopped_itself_stays_so() {
    let init = Init::start("sleep 100 & kill -STOP $!; echo ready; read x");
    let [sleep] = init.children()[..] else { panic!("one process") };
    let state = || Stat::read(&format!("/proc/{sleep}/stat")).expect("there").state;
    while state() != b'T' {
        std::thread::yield_now();
    }
    drop(init.freezer().freeze().expect("frozen"));
    assert_eq!(state(), b'T');
}

#[test]
fn an_id_that_is_used_again_is_nobodys_root() {
    let init = Init::start(FORKS);
    let mut freezer = init.freezer();
    for (_, start) in &mut freezer.roots {
        *start += 1;
    }
    assert!(freezer.freeze().expect("frozen").members.is_empty());
}

#[test]
fn only_what_began_since_is_killed() {
    let init = Init::start("sleep 300 & (sleep 200; :) & echo ready; read x");
    let frozen = init.freezer().freeze().expect("frozen");
    let ticks: Vec<u64> = frozen.members.values().map(|member| member.stat.start).collect();
    let last = ticks.iter().max().copied().expect("a process");
    let old: Vec<i32> =
        frozen.members.keys().copied().filter(|pid| frozen.is_since(*pid, last + 1, 0)).collect();
    assert!(old.is_empty(), "{old:?}");
    let first = ticks.iter().min().copied().expect("a process");
    let main = *frozen.members.keys().min().expect("a process");
    frozen.kill_since(first, main);
    drop(frozen);
    while init.children().into_iter().any(|pid| {
        let stat = Stat::read(&format!("/proc/{pid}/stat"));
        pid != main && stat.is_some_and(|stat| stat.state != b'Z')
    }) {
        std::thread::yield_now();
    }
    assert!(Stat::read(&format!("/proc/{main}/stat")).is_some_and(|stat| stat.state != b'Z'));
}
