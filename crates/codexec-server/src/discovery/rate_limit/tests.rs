use codexec_types::TokenName;

use super::*;

fn token(name: &str) -> Identity {
    Identity::Token(TokenName::new(name).expect("a name"))
}

fn rate_limited(wait_s: u64, is_first: bool) -> Result<(), RateLimited> {
    Err(RateLimited { wait: Duration::from_secs(wait_s), is_first })
}

#[test]
fn thirty_requests_are_allowed_in_any_minute() {
    let requests = DiscoveryRateLimit::default();
    let (client, start) = (Identity::LocalUser, Instant::now());
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    for second in 0..30 {
        assert_eq!(requests.count(&client, at(second)), Ok(()), "{second}");
    }
    assert_eq!(requests.count(&client, at(30)), rate_limited(30, true));
    assert_eq!(requests.count(&client, at(59)), rate_limited(1, false));
    assert_eq!(requests.count(&client, at(60)), Ok(()));
    // Refused requests do not count, and the window slides.
    assert_eq!(requests.count(&client, at(60)), rate_limited(1, true));
    assert_eq!(requests.count(&client, at(61)), Ok(()));
}

#[test]
fn every_client_has_its_own_count() {
    let requests = DiscoveryRateLimit::default();
    let now = Instant::now();
    let (one, other) = (token("one"), token("other"));
    for _ in 0..MAX_REQUESTS {
        assert_eq!(requests.count(&one, now), Ok(()));
    }
    assert_eq!(requests.count(&one, now), rate_limited(60, true));
    assert_eq!(requests.count(&other, now), Ok(()));
}

#[test]
fn clients_over_the_limit_share_a_count_until_others_expire() {
    let requests = DiscoveryRateLimit::default();
    let now = Instant::now();
    let client = |index: usize| token(&format!("client-{index}"));
    for index in 0..MAX_CLIENTS {
        assert_eq!(requests.count(&client(index), now), Ok(()));
    }
    for index in 0..MAX_REQUESTS {
        assert_eq!(requests.count(&client(MAX_CLIENTS + index), now), Ok(()));
    }
    assert_eq!(requests.count(&client(2 * MAX_CLIENTS), now), rate_limited(60, true));
    assert_eq!(requests.count(&client(0), now), Ok(()), "one that is known");
    let later = now + WINDOW;
    assert_eq!(requests.count(&client(2 * MAX_CLIENTS), later), Ok(()));
    assert_eq!(requests.0.lock().expect("a lock").len(), 1);
}
