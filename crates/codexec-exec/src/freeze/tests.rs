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
        list_tree(&[init]).into_iter().filter(|pid| *pid != init).collect()
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
fn all_processes_stop_and_resume() {
    let init = Init::start(FORKS);
    let freezer = init.freezer();
    let frozen = freezer.freeze().expect("frozen");
    assert!(frozen.members.len() >= 2, "{frozen:?}");
    for pid in init.children() {
        let state = ProcStat::read(&format!("/proc/{pid}/stat")).expect("there").state;
        assert!(matches!(state, b'T' | b'Z'), "{}", char::from(state));
    }
    assert!(frozen.is_still());
    let pids: Vec<i32> = frozen.members.keys().copied().collect();
    drop(frozen);
    for pid in pids {
        while ProcStat::read(&format!("/proc/{pid}/stat")).is_some_and(|stat| stat.state == b'T') {
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
fn processes_stopped_by_the_guest_stay_stopped() {
    let init = Init::start("sleep 100 & kill -STOP $!; echo ready; read x");
    let [sleep] = init.children()[..] else { panic!("one process") };
    let state = || ProcStat::read(&format!("/proc/{sleep}/stat")).expect("there").state;
    while state() != b'T' {
        std::thread::yield_now();
    }
    drop(init.freezer().freeze().expect("frozen"));
    assert_eq!(state(), b'T');
}

#[test]
fn a_reused_process_id_is_not_a_root() {
    let init = Init::start(FORKS);
    let mut freezer = init.freezer();
    for (_, start) in &mut freezer.roots {
        *start += 1;
    }
    assert!(freezer.freeze().expect("frozen").members.is_empty());
}

#[test]
fn only_processes_started_since_are_killed() {
    let init = Init::start("sleep 300 & (sleep 200; :) & echo ready; read x");
    let frozen = init.freezer().freeze().expect("frozen");
    let ticks: Vec<u64> = frozen.members.values().map(|member| member.stat.start).collect();
    let last = ticks.iter().max().copied().expect("a process");
    let old: Vec<i32> = frozen
        .members
        .keys()
        .copied()
        .filter(|pid| frozen.is_started_since(*pid, last + 1, 0))
        .collect();
    assert!(old.is_empty(), "{old:?}");
    let first = ticks.iter().min().copied().expect("a process");
    let main = *frozen.members.keys().min().expect("a process");
    frozen.kill_since(first, main);
    drop(frozen);
    while init.children().into_iter().any(|pid| {
        let stat = ProcStat::read(&format!("/proc/{pid}/stat"));
        pid != main && stat.is_some_and(|stat| stat.state != b'Z')
    }) {
        std::thread::yield_now();
    }
    assert!(ProcStat::read(&format!("/proc/{main}/stat")).is_some_and(|stat| stat.state != b'Z'));
}
