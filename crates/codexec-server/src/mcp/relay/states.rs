//! The states of servers that wait for answers of clients without a session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use serde_json::Value;

/// As long as a person may take to answer.
const LIFETIME: Duration = Duration::from_secs(600);
/// The limit for one token at one server; beyond it, the oldest state is forgotten.
const MAX_STATES: usize = 256;

/// States by the random keys that clients get instead.
///
/// THREAT[ASK-2]: a client cannot read, change or invent a state, and a state is valid only for
/// the token, the server and the request that it was made for, and only for a limited time.
#[derive(Default)]
pub(super) struct SealedStates(Mutex<HashMap<String, SealedState>>);

struct SealedState {
    state: String,
    /// The request that is to be continued.
    request: Value,
    made_at: Instant,
}

impl SealedStates {
    /// Keeps a server's state, and returns the key for the client.
    pub(super) fn seal(&self, state: String, request: Value) -> Result<String, ErrorData> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|_| {
            ErrorData::internal_error("there are no random numbers for a requestState", None)
        })?;
        let key = format!("{:032x}", u128::from_ne_bytes(bits));
        let now = Instant::now();
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.retain(|_, sealed| sealed.is_valid(now));
        if states.len() >= MAX_STATES {
            let oldest = states.iter().min_by_key(|(_, sealed)| sealed.made_at);
            let oldest = oldest.map(|(key, _)| key.clone()).unwrap_or_default();
            states.remove(&oldest);
        }
        states.insert(key.clone(), SealedState { state, request, made_at: now });
        Ok(key)
    }

    /// Returns the server's state for a request that continues.
    pub(super) fn open(&self, key: &str, request: &Value) -> Result<String, ErrorData> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sealed = states.get(key).filter(|sealed| sealed.is_valid(Instant::now()));
        match sealed.filter(|sealed| sealed.request == *request) {
            Some(sealed) => Ok(sealed.state.clone()),
            None => {
                let message = "requestState: it is not of this request, or has expired; send the \
                               request anew without requestState";
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }
}

impl SealedState {
    fn is_valid(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.made_at) < LIFETIME
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ask_2_a_state_is_only_for_its_own_request() {
        let states = SealedStates::default();
        let key = states.seal("state".to_owned(), json!({"name": "a"})).expect("random numbers");
        assert!(!key.contains("state"));
        assert_eq!(states.open(&key, &json!({"name": "a"})).expect("valid"), "state");
        assert!(states.open(&key, &json!({"name": "b"})).is_err());
        assert!(states.open(&format!("{key}0"), &json!({"name": "a"})).is_err());
        assert!(SealedStates::default().open(&key, &json!({"name": "a"})).is_err());
    }

    #[test]
    fn the_oldest_state_makes_room() {
        let states = SealedStates::default();
        let seal = |number: usize| states.seal(number.to_string(), json!(null)).expect("a key");
        let keys: Vec<String> = (0..=MAX_STATES).map(seal).collect();
        assert!(states.open(&keys[0], &json!(null)).is_err());
        assert_eq!(states.open(&keys[MAX_STATES], &json!(null)).expect("valid"), "256");
    }
}
