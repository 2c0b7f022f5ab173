//! How servers end, and what they leave behind.

use super::*;

/// Starts a server that has a child process and does not exit by itself. Returns the child's pid.
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
async fn a_crash_fails_calls_in_flight_and_the_next_call_restarts() {
    let gateway = gateway(&json!({}));
    let (hung, died) =
        tokio::join!(call(&gateway, "hang", json!({})), call(&gateway, "die", json!({})));
    let why = "server \"s\": it ended (exit status: 3; stderr: out of cheese)";
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

/// A server that closes its stdout counts as ended, and its process is killed.
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

/// A descendant that holds the server's pipe does not keep calls waiting.
#[tokio::test]
async fn a_dead_server_is_detected_while_a_child_holds_its_pipe() {
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
        // Without a supervisor, a descendant in its own session is out of reach, so the test kills
        // it.
        let pid = nix::unistd::Pid::from_raw(child.parse().expect("a pid"));
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        gateway.shutdown().await;
    }
}

/// Returns true if the process has ended, or is a zombie that only its new parent can reap.
fn is_dead(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    }
}
