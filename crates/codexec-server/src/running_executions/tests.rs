use codexec_types::{Edge, GuestOutput, Identity, TokenName};

use super::*;

fn identity(name: &str) -> Identity {
    Identity::Token(TokenName::new(name).expect("a name"))
}

fn about(bits: u128, name: &str) -> RunningExecution {
    RunningExecution {
        id: ExecutionId::from_bits(bits),
        principal: Principal::new(identity(name), Edge::Http),
        language: Language::Bash,
        session: None,
        started: SystemTime::now(),
    }
}

#[test]
fn http_9_only_the_owner_and_everyone_find_an_execution() {
    let table = RunningExecutions::default();
    let token = CancellationToken::new();
    let ann = about(1, "ann");
    let _run = table.add(ann.clone(), token.clone(), None);
    for (scope, is_found) in [
        (ReadScope::Of(identity("ann")), true),
        (ReadScope::RanHereFor(identity("ann")), true),
        (ReadScope::Everyone, true),
        (ReadScope::Of(identity("bob")), false),
        (ReadScope::Of(Identity::LocalUser), false),
    ] {
        assert_eq!(table.list(&scope).len(), usize::from(is_found), "{scope:?}");
        assert_eq!(table.watch(&ann.id, &scope).is_ok(), is_found, "{scope:?}");
    }
    assert!(!table.cancel(&ann.id, &ReadScope::Of(identity("bob"))));
    assert!(!token.is_cancelled());
    assert!(table.cancel(&ann.id, &ReadScope::Of(identity("ann"))));
    assert!(token.is_cancelled());
}

#[tokio::test]
async fn a_slow_watcher_misses_events_and_is_told_so() {
    let table = RunningExecutions::default();
    let ann = about(1, "ann");
    let mut run = table.add(ann.clone(), CancellationToken::new(), None);
    let mut watch = table.watch(&ann.id, &ReadScope::Everyone).expect("it runs");
    let mut output = GuestOutput::default();
    output.push(OutputStream::Out, "before");
    let joined = run.next_watcher().await.expect("a watcher");
    run.add_watcher(joined, &output);
    for _ in 0..WAITING_EVENTS {
        run.tell_output(OutputStream::Out, "x");
    }
    assert!(matches!(watch.next().await, Some(ExecutionEvent::Started(_))));
    let Some(ExecutionEvent::Earlier(earlier)) = watch.next().await else { panic!("no output") };
    assert_eq!(earlier, [(OutputStream::Out, "before".to_owned())]);
    let mut seen = 0;
    while seen < WAITING_EVENTS - 2 {
        assert!(matches!(watch.next().await, Some(ExecutionEvent::Output { .. })));
        seen += 1;
    }
    run.tell_output(OutputStream::Err, "y");
    assert!(matches!(watch.next().await, Some(ExecutionEvent::Missed(2))));
    assert!(matches!(watch.next().await, Some(ExecutionEvent::Output { .. })));
    let mut changes = table.subscribe();
    run.set_end(CoarseStatus::Success);
    drop(run);
    assert!(watch.next().await.is_none());
    assert_eq!(changes.recv().await.expect("a change").ended, Some(CoarseStatus::Success));
    assert_eq!(table.watch(&ann.id, &ReadScope::Everyone).err(), Some(WatchError::NotRunning));
}

#[test]
fn watchers_have_a_limit() {
    let table = RunningExecutions::default();
    let ann = about(1, "ann");
    let _run = table.add(ann.clone(), CancellationToken::new(), None);
    let watch = || table.watch(&ann.id, &ReadScope::Everyone);
    let watches: Vec<_> = (0..MAX_WATCHERS).map(|_| watch().expect("room")).collect();
    assert_eq!(watch().err(), Some(WatchError::TooManyWatchers));
    drop(watches);
    // Those who left before the execution noticed them still take the room of their messages.
    assert_eq!(watch().err(), Some(WatchError::NotRunning));
}
