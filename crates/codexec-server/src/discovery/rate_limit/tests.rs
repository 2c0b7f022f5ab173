use codexec_types::TokenName;

use super::*;

const MAX_REQUESTS: usize = 30;

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
        assert_eq!(requests.count(&client, MAX_REQUESTS, at(second)), Ok(()), "{second}");
    }
    assert_eq!(requests.count(&client, MAX_REQUESTS, at(30)), rate_limited(30, true));
    assert_eq!(requests.count(&client, MAX_REQUESTS, at(59)), rate_limited(1, false));
    assert_eq!(requests.count(&client, MAX_REQUESTS, at(60)), Ok(()));
    // Refused requests do not count, and the window slides.
    assert_eq!(requests.count(&client, MAX_REQUESTS, at(60)), rate_limited(1, true));
    assert_eq!(requests.count(&client, MAX_REQUESTS, at(61)), Ok(()));
}

#[test]
fn every_client_has_its_own_count() {
    let requests = DiscoveryRateLimit::default();
    let now = Instant::now();
    let (one, other) = (token("one"), token("other"));
    for _ in 0..MAX_REQUESTS {
        assert_eq!(requests.count(&one, MAX_REQUESTS, now), Ok(()));
    }
    assert_eq!(requests.count(&one, MAX_REQUESTS, now), rate_limited(60, true));
    assert_eq!(requests.count(&other, MAX_REQUESTS, now), Ok(()));
}

#[test]
fn clients_over_the_limit_share_a_count_until_others_expire() {
    let requests = DiscoveryRateLimit::default();
    let now = Instant::now();
    let client = |index: usize| token(&format!("client-{index}"));
    for index in 0..MAX_CLIENTS {
        assert_eq!(requests.count(&client(index), MAX_REQUESTS, now), Ok(()));
    }
    for index in 0..MAX_REQUESTS {
        assert_eq!(requests.count(&client(MAX_CLIENTS + index), MAX_REQUESTS, now), Ok(()));
    }
    assert_eq!(requests.count(&client(2 * MAX_CLIENTS), MAX_REQUESTS, now), rate_limited(60, true));
    assert_eq!(requests.count(&client(0), MAX_REQUESTS, now), Ok(()), "one that is known");
    let later = now + WINDOW;
    assert_eq!(requests.count(&client(2 * MAX_CLIENTS), MAX_REQUESTS, later), Ok(()));
    assert_eq!(requests.0.lock().expect("a lock").len(), 1);
}
