use std::{sync::mpsc, time::Duration};

use super::*;
use crate::{Caller, GatewaySettings, Warden};

fn gateway() -> Gateway {
    Gateway::new(Vec::new(), GatewaySettings::new(Vec::new(), Warden::none()))
}

/// THREAT[ORD-3]: the work ends only if the event loop goes on meanwhile.
#[tokio::test]
async fn ord_3_work_does_not_block_the_event_loop() {
    let (sender, receiver) = mpsc::channel();
    let gateway = gateway();
    let work = gateway.run_blocking(move || receiver.recv_timeout(Duration::from_secs(30)));
    let (done, ()) = tokio::join!(work, async move { sender.send(()).expect("it listens") });
    assert_eq!(done.expect("finished"), Ok(()));
}

/// THREAT[ORD-3]: the second job of a caller begins when the first has ended.
#[tokio::test]
async fn ord_3_a_caller_has_one_job_at_a_time() {
    let caller = gateway().on_behalf_of(Caller::default());
    let (sender, receiver) = mpsc::channel();
    let first = caller.run_blocking(move || receiver.recv_timeout(Duration::from_millis(200)));
    let second = caller.run_blocking(move || sender.send(()).is_ok());
    let (first, second) = tokio::join!(first, second);
    second.expect("finished");
    assert_eq!(first.expect("finished"), Err(mpsc::RecvTimeoutError::Timeout));
}
