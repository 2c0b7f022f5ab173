use super::*;

fn too_many(wait_s: u64, is_first: bool) -> Result<(), TooMany> {
    Err(TooMany { wait: Duration::from_secs(wait_s), is_first })
}

#[test]
fn thirty_in_any_minute_and_then_one_for_each_that_is_old_enough() {
    let requests = Requests::default();
    let (client, start) = (Principal::local(), Instant::now());
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    for second in 0..30 {
        assert_eq!(requests.count(&client, at(second)), Ok(()), "{second}");
    }
    assert_eq!(requests.count(&client, at(30)), too_many(30, true));
    assert_eq!(requests.count(&client, at(59)), too_many(1, false));
    assert_eq!(requests.count(&client, at(60)), Ok(()));
    // Refused requests do not count, and the window slides.
    assert_eq!(requests.count(&client, at(60)), too_many(1, true));
    assert_eq!(requests.count(&client, at(61)), Ok(()));
}

#[test]
fn clients_do_not_count_for_each_other() {
    let requests = Requests::default();
    let now = Instant::now();
    let (one, other) = (Principal::named("one"), Principal::named("other"));
    for _ in 0..MOST {
        assert_eq!(requests.count(&one, now), Ok(()));
    }
    assert_eq!(requests.count(&one, now), too_many(60, true));
    assert_eq!(requests.count(&other, now), Ok(()));
}

#[test]
fn more_clients_than_are_remembered_share_a_count_until_some_are_forgotten() {
    let requests = Requests::default();
    let now = Instant::now();
    let client = |index: usize| Principal::named(format!("client {index}"));
    for index in 0..MAX_CLIENTS {
        assert_eq!(requests.count(&client(index), now), Ok(()));
    }
    for index in 0..MOST {
        assert_eq!(requests.count(&client(MAX_CLIENTS + index), now), Ok(()));
    }
    assert_eq!(requests.count(&client(2 * MAX_CLIENTS), now), too_many(60, true));
    assert_eq!(requests.count(&client(0), now), Ok(()), "one that is known");
    let later = now + WINDOW;
    assert_eq!(requests.count(&client(2 * MAX_CLIENTS), later), Ok(()));
    assert_eq!(requests.0.lock().expect("a lock").len(), 1);
}
