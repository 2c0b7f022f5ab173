//! Calls that are sent, queued or refused.

use std::sync::{Arc, Mutex};

use futures::future::join_all;

use super::*;
use crate::{BreakerState, Caller, OnProgress};

/// Starts a server with this plan and changed settings.
fn gateway_with(plan: &Value, change: impl FnOnce(&mut GatewaySettings)) -> Gateway {
    let mut settings = settings();
    change(&mut settings);
    Gateway::new(vec![server("s", plan)], settings)
}

async fn message(gateway: &Gateway, tool: &str, args: Value) -> Result<Value, String> {
    call(gateway, tool, args).await.map_err(|err| err.message)
}

/// Returns the calls that the server itself recorded.
fn received(log: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn five_failures_open_the_breaker_and_one_probe_closes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let gateway =
        gateway_with(&json!({"tools": ["flaky", "echo"], "flaky": 6, "log": log}), |settings| {
            settings.call_timeout = Duration::from_secs(1);
            settings.breaker_open = Duration::from_secs(3);
        });
    let failed = "server \"s\": no answer within 1 s";
    for _ in 0..5 {
        assert_eq!(message(&gateway, "flaky", json!({})).await, Err(failed.to_owned()));
    }
    let broken = "server \"s\": circuit open: it failed 5 times in a row, last error: no answer within 1 s; try \
                  again in 3 s";
    assert_eq!(message(&gateway, "echo", json!({})).await, Err(broken.to_owned()));
    assert_eq!(gateway.health()[0].breaker, BreakerState::Open);
    assert_eq!(received(&log).len(), 5);

    // The sixth call hangs too, and is the only one sent.
    let is_over = || gateway.health()[0].retry_s == Some(0);
    wait_until(is_over).await;
    let answers = join_all((0..10).map(|_| message(&gateway, "flaky", json!({})))).await;
    let probed = "server \"s\": circuit open: it failed before (no answer within 1 s), and one call is testing \
                  it now; try again in 1 s";
    assert_eq!(answers[0], Err(failed.to_owned()));
    assert_eq!(answers[1..], vec![Err(probed.to_owned()); 9]);
    assert_eq!(received(&log).len(), 6);
    assert_eq!(gateway.health()[0].breaker, BreakerState::Open);

    wait_until(is_over).await;
    let answers = join_all((0..10).map(|_| message(&gateway, "flaky", json!({})))).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(received(&log).len(), 7);
    assert_eq!(message(&gateway, "echo", json!({})).await, Ok(json!({})));
    let health = gateway.health().remove(0);
    assert_eq!((health.breaker, health.retry_s), (BreakerState::Closed, None));
    let counts = health.counts;
    assert_eq!((counts.calls, counts.failures, counts.timeouts, counts.refused), (8, 6, 6, 19));
    gateway.shutdown().await;
}

async fn wait_until(is_met: impl Fn() -> bool) {
    let met = async {
        while !is_met() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), met).await.expect("in time");
}

#[tokio::test]
async fn tool_errors_do_not_open_the_breaker() {
    let gateway = gateway(&json!({"tools": ["fails", "refuses", "echo"]}));
    for tool in ["fails", "refuses"] {
        for _ in 0..6 {
            call(&gateway, tool, json!({})).await.expect_err("it fails");
            call(&gateway, tool, json!([])).await.expect_err("no arguments");
        }
    }
    let health = gateway.health().remove(0);
    assert_eq!((health.breaker, health.counts.failures), (BreakerState::Closed, 0));
    assert_eq!(health.counts.last_error, None);
    gateway.shutdown().await;
}

/// An impatient guest must not close the server to everybody.
#[tokio::test]
async fn up_10_calls_that_their_callers_give_up_do_not_open_the_breaker() {
    let gateway = gateway(&json!({}));
    call(&gateway, "echo", json!({})).await.expect("works");
    let given_up = join_all((0..7).map(|_| {
        tokio::time::timeout(Duration::from_millis(1_200), call(&gateway, "hang", json!({})))
    }));
    assert!(given_up.await.iter().all(Result::is_err));
    let health = gateway.health();
    assert_eq!((health[0].breaker, health[0].counts.failures), (BreakerState::Closed, 0));
    gateway.shutdown().await;
}

#[tokio::test]
async fn up_10_a_silent_server_is_detected_by_its_timeout() {
    let gateway =
        gateway_with(&json!({}), |settings| settings.call_timeout = Duration::from_secs(1));
    call(&gateway, "echo", json!({})).await.expect("works");
    let hung = join_all((0..5).map(|_| call(&gateway, "hang", json!({})))).await;
    assert!(hung.iter().all(Result::is_err));
    assert_eq!(gateway.health()[0].breaker, BreakerState::Open);
    gateway.shutdown().await;
}

#[tokio::test]
async fn calls_queue_or_get_a_retry_delay() {
    let mut narrow = server("s", &json!({}));
    narrow.narrow.calls_at_once = Some(2);
    let mut settings = settings();
    settings.queue = 1;
    let gateway = Gateway::new(vec![narrow], settings);
    call(&gateway, "echo", json!({})).await.expect("works");
    let hung = async || drop(call(&gateway, "hang", json!({})).await);
    let refused = async {
        wait_until(|| gateway.health()[0].counts.in_flight == 2).await;
        // The third call waits until one of the two is given up.
        let third = call(&gateway, "echo", json!({"n": 3}));
        let fourth = async {
            wait_until(|| gateway.health()[0].counts.waiting == 1).await;
            message(&gateway, "echo", json!({})).await
        };
        tokio::select! {
            _ = third => unreachable!("both places are taken"),
            fourth = fourth => fourth,
        }
    };
    let fourth = tokio::select! {
        ((), ()) = async { tokio::join!(hung(), hung()) } => unreachable!("they hang"),
        fourth = refused => fourth,
    };
    let why = "server \"s\": Service Unavailable: 2 calls are under way and 1 more wait; try again in 1 s";
    assert_eq!(fourth, Err(why.to_owned()));
    assert_eq!(call(&gateway, "echo", json!({"n": 5})).await, Ok(json!({"n": 5})));
    assert_eq!(gateway.health()[0].counts.refused, 1);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_hanging_server_leaves_calls_for_others() {
    let mut settings = settings();
    settings.calls_in_all = 8;
    let servers = vec![server("s", &json!({})), server("good", &json!({}))];
    let gateway = Gateway::new(servers, settings);
    let hung = join_all((0..30).map(|_| call(&gateway, "hang", json!({}))));
    let others = async {
        wait_until(|| gateway.health()[0].counts.waiting > 0).await;
        for n in 0..20 {
            let args = Json::from_value(&json!({ "n": n }));
            let ask = Ask::Tool { server: "good".to_owned(), tool: "echo".to_owned(), args };
            gateway.answer(ask, &ToolFilter::all(), Language::TypeScript).await.expect("answered");
        }
    };
    tokio::select! {
        _ = hung => unreachable!("they hang"),
        () = others => {}
    }
    gateway.shutdown().await;
}

/// The queue for a server that does not read is bounded.
#[tokio::test]
async fn a_server_that_does_not_read_fails_its_calls() {
    const CALLS: usize = 2_000;
    let mut settings = settings();
    settings.call_timeout = Duration::from_secs(3);
    (settings.calls_at_once, settings.calls_in_all) = (CALLS, CALLS);
    let plan = json!({"tools": ["echo", "deaf"]});
    let gateway = Gateway::new(vec![server("s", &plan)], settings);
    call(&gateway, "deaf", json!({})).await.expect("works");
    let answers = join_all((0..CALLS).map(|_| message(&gateway, "echo", json!({})))).await;
    let count = |why: &str| {
        let is_met =
            |one: &&Result<Value, String>| one.as_ref().is_err_and(|one| one.contains(why));
        answers.iter().filter(is_met).count()
    };
    let unasked =
        count("server \"s\": it does not read its stdin, and the queue of requests is full");
    assert!(unasked > 0);
    let given_up =
        count(": no answer within 3 s") + count(": circuit open: it failed 5 times in a row");
    assert_eq!(unasked + given_up, CALLS);
    gateway.shutdown().await;
}

#[tokio::test]
async fn progress_keeps_a_call_alive_but_not_for_ever() {
    let plan = json!({"tools": ["steps", "steps_for_ever", "echo"]});
    let gateway = gateway_with(&plan, |settings| {
        settings.call_timeout = Duration::from_secs(1);
        settings.call_total_timeout = Duration::from_secs(4);
    });
    let steps = json!({"steps": 10, "pause_s": 0.2});
    assert_eq!(call(&gateway, "steps", steps).await, Ok(json!("done")));
    let quiet = message(&gateway, "steps", json!({"steps": 1, "pause_s": 30})).await;
    assert_eq!(quiet, Err("server \"s\": no answer within 1 s".to_owned()));
    gateway.shutdown().await;
    let gateway = gateway_with(&plan, |settings| {
        settings.call_timeout = Duration::from_secs(1);
        settings.call_total_timeout = Duration::from_secs(2);
    });
    let endless = message(&gateway, "steps_for_ever", json!({})).await;
    assert_eq!(endless, Err("server \"s\": no answer within 2 s".to_owned()));
    gateway.shutdown().await;
}

#[tokio::test]
async fn progress_reaches_the_caller() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = told.clone();
    let on_progress: OnProgress = Arc::new(move |progress| {
        sink.lock().expect("a lock").push(progress.message.unwrap_or_default());
    });
    let gateway = gateway(&json!({"tools": ["steps"]}));
    let gateway = gateway.on_behalf_of(Caller::default().on_progress(on_progress));
    call(&gateway, "steps", json!({"steps": 3})).await.expect("works");
    assert_eq!(*told.lock().expect("a lock"), ["step 0", "step 1", "step 2"]);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_upstream() {
    let gateway = gateway(&json!({}));
    call(&gateway, "echo", json!({})).await.expect("works");
    let sent = async {
        while gateway.health()[0].counts.calls < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = call(&gateway, "hang", json!({})) => unreachable!("it hangs"),
        () = async { sent.await; call(&gateway, "echo", json!({})).await.expect("works"); } => {}
    }
    let seen = async { while call(&gateway, "cancelled", json!({})).await == Ok(json!([])) {} };
    tokio::time::timeout(Duration::from_secs(10), seen).await.expect("told");
    gateway.shutdown().await;
}
