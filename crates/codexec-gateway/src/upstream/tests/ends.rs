//! How servers end, and what is left of them.

use super::*;

/// A server that has started another process and does not end by itself, and that process.
async fn with_grandchild() -> (Gateway, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pid");
    let plan = json!({"grandchild": file.display().to_string(), "ignore_eof": true});
    let gateway = gateway(&plan);
    call(&gateway, "echo", json!({})).await.expect("works");
    let grandchild = std::fs::read_to_string(&file).expect("written before the handshake");
    (gateway, grandchild)
}

#[tokio::test]
async fn a_crash_fails_what_is_in_flight_and_the_next_call_restarts() {
    let gateway = gateway(&json!({}));
    let (hung, died) =
        tokio::join!(call(&gateway, "hang", json!({})), call(&gateway, "die", json!({})));
    let why = "server \"s\": it ended (exit status: 3; it said: out of cheese)";
    assert_eq!(hung.expect_err("died").message, why);
    assert_eq!(died.expect_err("died").message, why);
    assert_eq!(call(&gateway, "echo", json!({"n": 2})).await, Ok(json!({"n": 2})));
    assert_eq!(gateway.health()[0].state, ServerState::Ready);
    gateway.shutdown().await;
}

#[tokio::test]
async fn nothing_of_a_server_survives_a_shutdown() {
    let (gateway, grandchild) = with_grandchild().await;
    let leader = gateway.health()[0].pid.expect("running").to_string();
    let asked = std::time::Instant::now();
    gateway.shutdown().await;
    assert!(asked.elapsed() <= Duration::from_millis(2_500));
    assert!(is_dead(&grandchild) && is_dead(&leader));
}

#[tokio::test]
async fn nothing_of_a_server_survives_the_last_handle() {
    let (gateway, grandchild) = with_grandchild().await;
    drop(gateway);
    let gone = async {
        while !is_dead(&grandchild) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("killed");
}

/// Its output is over, so it is: a process that stays behind is of no use to anybody.
#[tokio::test]
async fn a_server_that_closes_its_output_is_ended_and_started_again() {
    let gateway = gateway(&with_tool("close_output"));
    call(&gateway, "echo", json!({})).await.expect("works");
    let pid = gateway.health()[0].pid.expect("running").to_string();
    let why = call(&gateway, "close_output", json!({})).await.expect_err("closed").message;
    assert!(why.starts_with("server \"s\": it ended ("), "{why}");
    assert_eq!(call(&gateway, "echo", json!({"n": 1})).await, Ok(json!({"n": 1})));
    let health = &gateway.health()[0];
    assert_ne!(health.pid.map(|pid| pid.to_string()), Some(pid.clone()));
    assert_eq!(health.counts.restarts, 1);
    let gone = async {
        while !is_dead(&pid) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("killed");
    gateway.shutdown().await;
}

/// Whoever a server leaves behind with its pipe does not keep its calls waiting.
#[tokio::test]
async fn a_dead_server_is_dead_whoever_holds_its_pipe() {
    for tool in ["leave_child", "leave_session"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        let gateway = gateway(&json!({"tools": [tool, "echo"], "child": file}));
        let why = call(&gateway, tool, json!({})).await.expect_err("dead").message;
        assert_eq!(why, "server \"s\": it ended (exit status: 7)", "{tool}");
        assert_eq!(call(&gateway, "echo", json!({"n": 1})).await, Ok(json!({"n": 1})));
        let child = std::fs::read_to_string(&file).expect("written before it died");
        if tool == "leave_child" {
            assert!(is_dead(&child));
        }
        // One in a session of its own is out of reach; this test is not to leave it behind.
        let pid = nix::unistd::Pid::from_raw(child.parse().expect("a pid"));
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        gateway.shutdown().await;
    }
}

/// Gone, or a zombie that only its new parent can bury.
fn is_dead(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    }
}
