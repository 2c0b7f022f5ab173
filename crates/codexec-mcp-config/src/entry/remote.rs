//! Reads an entry for a remote server.

use url::Url;

use super::{BadEntry, ConfigEntry};
use crate::{
    ConfigOwner, OAuthConfig, RemoteConfig, RemoteKind, SecretSource, TransportConfig,
    node::ConfigNode,
};

impl ConfigEntry<'_> {
    pub(super) fn read_remote(
        &mut self,
        key: &str,
        kind: RemoteKind,
    ) -> Result<TransportConfig, BadEntry> {
        let text = self.text(key)?.unwrap_or_default();
        let url = match Url::parse(text.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
            Ok(url) => {
                let what = format!("has the scheme {:?}; use http or https", url.scheme());
                return Err(self.error_at(key, &what));
            }
            // The message leaves out the text, which may contain a token.
            Err(error) => {
                let what = format!("is not a URL ({error}); write it like https://host/mcp");
                return Err(self.error_at(key, &what));
            }
        };
        let mut headers = self.pairs(self.dialect.headers)?;
        if self.scope.client == ConfigOwner::Codex {
            headers.extend(self.codex_headers());
        }
        if let Some((name, _)) = headers.iter().find(|(name, value)| !is_valid_header(name, value))
        {
            let what = format!(
                "has {name:?}, which is not a valid header name or has a line break in its value"
            );
            return Err(self.error_at(self.dialect.headers, &what));
        }
        for helper in ["headersHelper", "http_headers_helper"] {
            if self.node.get(helper).is_some() {
                let what = "is a program that generates headers; codexec does not run it";
                self.notes.push(self.error_at(helper, what).what);
            }
        }
        let oauth = self.read_oauth()?;
        Ok(TransportConfig::Remote(RemoteConfig { kind, url, headers, oauth }))
    }

    /// Returns the headers that Codex takes from environment variables.
    fn codex_headers(&mut self) -> Vec<(String, SecretSource)> {
        let mut headers = Vec::new();
        if let Some(name) = self.node.get("bearer_token_env_var").and_then(ConfigNode::text) {
            match (self.scope.world.variable)(name) {
                Some(token) => {
                    let value = SecretSource::Plain(format!("Bearer {}", token.trim()));
                    headers.push(("Authorization".to_owned(), value));
                }
                None => self.expansion.unset.push(format!("${name}")),
            }
        }
        let named = self.node.get("env_http_headers").and_then(ConfigNode::entries);
        for (header, variable) in named.unwrap_or_default().into_iter().take(super::MAX_ITEMS) {
            let Some(name) = variable.text() else { continue };
            if (self.scope.world.variable)(name).is_some() {
                headers.push((header.to_owned(), SecretSource::Variable(name.to_owned())));
            } else {
                self.expansion.unset.push(format!("${name}"));
            }
        }
        headers
    }

    /// Reads the OAuth settings; clients spell the same keys differently.
    fn read_oauth(&mut self) -> Result<OAuthConfig, BadEntry> {
        let tables: Vec<&ConfigNode> = ["oauth", "auth"]
            .into_iter()
            .filter_map(|key| self.node.get(key))
            .filter(|node| node.entries().is_some())
            .collect();
        let find = |keys: &[&str]| {
            keys.iter().find_map(|key| tables.iter().find_map(|table| table.get(key)))
        };
        let id =
            find(&["clientId", "client_id", "client-id", "CLIENT_ID"]).and_then(ConfigNode::text);
        let secret = find(&["clientSecret", "client_secret", "client-secret", "CLIENT_SECRET"]);
        let port =
            find(&["callbackPort", "callback_port", "callback-port"]).and_then(ConfigNode::number);
        let scopes = find(&["scopes", "scope"]).or_else(|| self.node.get("scopes"));
        let scopes = scopes.map(|node| match node.text() {
            Some(text) => text.split_whitespace().map(str::to_owned).collect(),
            None => node.texts(),
        });
        let client_id = id.map(|id| self.expand(id));
        let client_secret = match secret.and_then(ConfigNode::text) {
            Some(text) => Some(self.secret("oauth", text)?),
            None => None,
        };
        let callback_port = match port {
            None => None,
            Some(port) if port.fract() == 0.0 && (1.0..=65_535.0).contains(&port) =>
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the match arm checks both bounds"
                )]
                Some(port as u16)
            }
            Some(_) => {
                return Err(self.error_at("oauth", "has an invalid callback port; use 1 to 65535"));
            }
        };
        Ok(OAuthConfig {
            client_id,
            client_secret,
            callback_port,
            scopes: scopes.unwrap_or_default(),
        })
    }
}

fn is_valid_header(name: &str, value: &SecretSource) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let is_valid_value = match value {
        SecretSource::Plain(text) => !text.contains(['\r', '\n']),
        SecretSource::Variable(_) | SecretSource::File(_) | SecretSource::Keyring(_) => true,
    };
    !name.is_empty() && name.bytes().all(is_token) && is_valid_value
}
