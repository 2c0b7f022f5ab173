use codexec_types::TokenName;

use super::*;

#[tokio::test]
async fn res_12_one_identity_cannot_fill_the_queue() {
    let queue = queue(1, 8);
    let running = queue.take_ticket(&token("ann")).expect("a permit");
    let mut tickets = Vec::new();
    let refusal = loop {
        match queue.take_ticket(&token("ann")) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => break error,
        }
    };
    assert_eq!((tickets.len(), refusal.code()), (6, "BUSY"));
    let other = queue.take_ticket(&token("bob")).expect("a position");
    let third = queue.take_ticket(&Identity::LocalUser).expect("a position");
    assert_eq!(queue.load(), (1, 8));
    drop((other, third, tickets));
    assert_eq!(queue.load(), (1, 0));
    assert!(queue.take_ticket(&token("ann")).is_ok());
    drop(running);
}

#[tokio::test]
async fn res_12_identities_take_turns() {
    let queue = queue(1, 8);
    let running = queue.take_ticket(&token("ann")).expect("a permit");
    let running = queue.acquire(running).await.expect("a permit");
    let order = Arc::<Mutex<Vec<&str>>>::default();
    let mut waiting = Vec::new();
    for (name, identity) in [("a1", "ann"), ("a2", "ann"), ("a3", "ann"), ("b1", "bob")] {
        let ticket = queue.take_ticket(&token(identity)).expect("a position");
        let (queue, order) = (Arc::clone(&queue), Arc::clone(&order));
        let wait = tokio::spawn(async move {
            let permit = queue.acquire(ticket).await.expect("a permit");
            order.lock().expect("no panic").push(name);
            drop(permit);
        });
        waiting.push(wait);
        // The runtime has one thread, so the task above waits when this one continues.
        tokio::task::yield_now().await;
    }
    drop(running);
    for wait in waiting {
        wait.await.expect("no panic");
    }
    assert_eq!(*order.lock().expect("no panic"), ["a1", "b1", "a2", "a3"]);
}

#[tokio::test]
async fn a_closed_queue_refuses_waiting_requests() {
    let queue = queue(1, 8);
    let _running = queue.take_ticket(&token("ann")).expect("a permit");
    let waiting = [(); 2].map(|()| queue.take_ticket(&token("ann")).expect("a position"));
    queue.close();
    for ticket in waiting {
        assert_eq!(queue.acquire(ticket).await.unwrap_err().code(), "BUSY");
    }
}

fn queue(max: usize, positions: usize) -> Arc<WorkerQueue> {
    Arc::new(WorkerQueue::new(max, positions, Duration::from_secs(60)))
}

fn token(name: &str) -> Identity {
    Identity::Token(TokenName::new(name).expect("a name"))
}
