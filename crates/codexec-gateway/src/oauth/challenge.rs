use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

/// A longer header is ignored.
const MAX_BYTES: usize = 4 << 10;

/// A server's `WWW-Authenticate: Bearer` challenge.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Challenge {
    pub(super) header: String,
    pub(super) scopes: Vec<String>,
    /// The token is valid, but lacks a scope.
    pub(crate) is_about_scope: bool,
}

impl Challenge {
    pub(crate) fn read(header: &str, server: &Url) -> Option<Challenge> {
        let is_bearer = header.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("bearer"));
        if !is_bearer || header.len() > MAX_BYTES {
            return None;
        }
        let params = WWWAuthenticateParams::parse(header, server);
        let scopes = params.scope.as_deref().unwrap_or_default().split_whitespace();
        Some(Challenge {
            header: header.to_owned(),
            scopes: scopes.map(str::to_owned).collect(),
            is_about_scope: params.is_insufficient_scope(),
        })
    }
}
