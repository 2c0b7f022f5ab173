use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

/// Renewed this long before it ends.
const EARLY: Duration = Duration::from_secs(60);

/// What a login gave us, and all that is needed to renew it. Never shown by `Debug`.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Grant {
    /// The server it was made for; it is sent nowhere else.
    pub(super) server: Url,
    pub(super) issuer: Option<String>,
    pub(super) resource: String,
    pub(super) token_endpoint: Url,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    /// The secret goes into the body instead of a header.
    pub(super) is_secret_in_body: bool,
    pub(super) scopes: Vec<String>,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// Seconds since 1970.
    pub(super) expires_at: Option<u64>,
}

/// What there is of a token endpoint's answer; the rest stays as it was.
pub(super) struct Tokens {
    pub(super) access_token: String,
    refresh_token: Option<String>,
    expires_at: Option<u64>,
    scopes: Option<Vec<String>>,
}

impl Tokens {
    pub(super) fn read(answer: &Value) -> Option<Tokens> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        let is_bearer = text("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
        let lasts = answer.get("expires_in").and_then(|seconds| {
            // Some write it as a text.
            seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok())
        });
        Some(Tokens {
            access_token: text("access_token").filter(|_| is_bearer)?.to_owned(),
            refresh_token: text("refresh_token").filter(|it| !it.is_empty()).map(str::to_owned),
            expires_at: lasts.map(|seconds| now().saturating_add(seconds)),
            scopes: text("scope").map(|it| it.split_whitespace().map(str::to_owned).collect()),
        })
    }
}

impl Grant {
    pub(super) fn take(&mut self, tokens: Tokens) {
        self.access_token = tokens.access_token;
        self.refresh_token = tokens.refresh_token.or_else(|| self.refresh_token.take());
        self.expires_at = tokens.expires_at;
        if let Some(scopes) = tokens.scopes {
            self.scopes = scopes;
        }
    }

    /// It ends so soon that it is better renewed first.
    pub(super) fn is_stale(&self) -> bool {
        self.expires_at.is_some_and(|at| at <= now().saturating_add(EARLY.as_secs()))
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("server", &self.server.as_str())
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
