use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

/// How long before its expiry a token is renewed.
const EARLY: Duration = Duration::from_secs(60);

/// The tokens of a login, and everything needed to renew them. `Debug` never prints them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TokenGrant {
    /// The server that the tokens are for; they are sent nowhere else.
    pub(super) server: Url,
    pub(super) issuer: Option<String>,
    pub(super) resource: String,
    pub(super) token_endpoint: Url,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    /// The client secret goes into the form body instead of a header.
    pub(super) is_secret_in_body: bool,
    pub(super) scopes: Vec<String>,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// Seconds since 1970.
    pub(super) expires_at: Option<u64>,
}

/// The answer of a token endpoint. Missing fields keep their old values.
pub(super) struct TokenResponse {
    pub(super) access_token: String,
    refresh_token: Option<String>,
    expires_at: Option<u64>,
    scopes: Option<Vec<String>>,
}

impl TokenResponse {
    pub(super) fn read(answer: &Value) -> Option<TokenResponse> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        let is_bearer = text("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
        let lifetime = answer.get("expires_in").and_then(|seconds| {
            // Some servers send it as a string.
            seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok())
        });
        Some(TokenResponse {
            access_token: text("access_token").filter(|_| is_bearer)?.to_owned(),
            refresh_token: text("refresh_token").filter(|it| !it.is_empty()).map(str::to_owned),
            expires_at: lifetime.map(|seconds| now().saturating_add(seconds)),
            scopes: text("scope").map(|it| it.split_whitespace().map(str::to_owned).collect()),
        })
    }
}

impl TokenGrant {
    pub(super) fn update(&mut self, tokens: TokenResponse) {
        self.access_token = tokens.access_token;
        self.refresh_token = tokens.refresh_token.or_else(|| self.refresh_token.take());
        self.expires_at = tokens.expires_at;
        if let Some(scopes) = tokens.scopes {
            self.scopes = scopes;
        }
    }

    /// Returns true if the token expires so soon that it should be renewed first.
    pub(super) fn is_stale(&self) -> bool {
        self.expires_at.is_some_and(|at| at <= now().saturating_add(EARLY.as_secs()))
    }
}

impl fmt::Debug for TokenGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenGrant")
            .field("server", &self.server.as_str())
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
