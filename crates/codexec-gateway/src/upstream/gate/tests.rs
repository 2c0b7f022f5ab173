use std::sync::Arc;

use super::*;
use crate::Warden;

/// Long enough for calls that are served, and short for those that are not.
const WAIT: Duration = Duration::from_millis(300);

fn gate(size: usize, queue: usize) -> Gate {
    let settings = GatewaySettings {
        queue,
        queue_wait: WAIT,
        ..GatewaySettings::new(Vec::new(), Warden::none())
    };
    let narrow = ServerOptions { calls_at_once: Some(size), ..ServerOptions::default() };
    Gate::new(&settings, &narrow)
}

#[tokio::test]
async fn calls_are_admitted_in_order_of_arrival() {
    let gate = Arc::new(gate(1, 10));
    let first = gate.acquire_call().await.expect("free");
    let (served, mut order) = tokio::sync::mpsc::channel(5);
    for number in 0..5 {
        let (others, served) = (gate.clone(), served.clone());
        tokio::spawn(async move {
            let _call = others.acquire_call().await.expect("in time");
            served.send(number).await.expect("somebody listens");
        });
        while gate.waiting_count() <= number {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!((gate.in_flight(), gate.waiting_count()), (1, 5));
    drop(first);
    for number in 0..5 {
        assert_eq!(order.recv().await, Some(number));
    }
    assert_eq!(gate.waiting_count(), 0);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_waits_time_out() {
    let gate = gate(1, 1);
    let _call = gate.acquire_call().await.expect("free");
    let (waited, refused) = tokio::join!(gate.acquire_call(), gate.acquire_call());
    assert_eq!(waited.map(drop), Err(QueueRefusal { size: 1, waiting: 0, waited: Some(WAIT) }));
    assert_eq!(refused.map(drop), Err(QueueRefusal { size: 1, waiting: 1, waited: None }));
    assert_eq!((gate.in_flight(), gate.waiting_count()), (1, 0));
}

#[tokio::test]
async fn dropped_waiters_are_not_counted() {
    let gate = gate(1, 1);
    let call = gate.acquire_call().await.expect("free");
    tokio::select! {
        biased;
        _ = gate.acquire_call() => unreachable!("taken"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(gate.waiting_count(), 0);
    drop(call);
    gate.acquire_call().await.map(drop).expect("free again");
}

#[tokio::test]
async fn hanging_servers_leave_calls_for_the_others() {
    let common = Semaphore::new(6);
    let (hung, good) = (gate(100, 200), gate(100, 200));
    let mut held = Vec::new();
    for _ in 0..RESERVED_CALLS + 6 {
        held.push(hung.acquire_shared_call(&common).await.expect("free"));
    }
    assert!(hung.acquire_shared_call(&common).await.is_err(), "all that is shared is used up");
    let mut own = Vec::new();
    for _ in 0..RESERVED_CALLS {
        own.push(good.acquire_shared_call(&common).await.expect("its own"));
    }
    assert!(good.acquire_shared_call(&common).await.is_err());
    // The first free permit of either kind is taken.
    let (next, ()) = tokio::join!(good.acquire_shared_call(&common), async { drop(own.pop()) });
    drop(next.expect("its own again"));
    let _own = good.acquire_shared_call(&common).await.expect("its own");
    let (next, ()) = tokio::join!(good.acquire_shared_call(&common), async { drop(held.pop()) });
    drop(next.expect("what all share"));
}

#[tokio::test]
async fn up_11_waiting_arguments_are_counted_over_all_callers() {
    let gate = gate(100, 10);
    assert!(gate.reserve_argument_memory(SMALL_BYTES).await.expect("needs none").is_none());
    let half = gate.reserve_argument_memory((ARGUMENT_KIB as usize) << 9).await.expect("free");
    let rest = gate.reserve_argument_memory((ARGUMENT_KIB as usize) << 9).await.expect("free");
    let crowded = gate
        .reserve_argument_memory(SMALL_BYTES + 1_024)
        .await
        .map(|_| ())
        .expect_err("all is taken");
    assert_eq!(crowded.waited, Some(WAIT));
    assert!(gate.reserve_argument_memory(SMALL_BYTES).await.expect("needs none").is_none());
    drop(half);
    assert!(
        gate.reserve_argument_memory(usize::MAX >> 20).await.is_err(),
        "no more than what is left"
    );
    drop(rest);
    assert!(gate.reserve_argument_memory(usize::MAX).await.expect("as much as there is").is_some());
}
