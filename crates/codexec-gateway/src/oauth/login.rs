//! A login, from the server's refusal to a token of ours.

use std::{sync::Arc, time::Duration};

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::{
    challenge::Challenge,
    grant::{Grant, Tokens},
    http::LoginHttp,
    listener::{Callback, Listener},
    store::{Kept, Store},
};
use crate::{
    OAuthConfig, RemoteConfig, ServerConfig, Settings, TransportConfig,
    clean::{clean_line, cut},
    web,
};

/// How long somebody may take in the browser.
const PATIENCE: Duration = Duration::from_secs(300);
const PROBE: Duration = Duration::from_secs(20);
const ADDRESS_BYTES: usize = 8 << 10;

/// Where and for what we are logged in now.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedIn {
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// The token is in the desktop's keyring, not in a file of ours.
    pub is_in_keyring: bool,
}

/// Why there is no login. Never holds anything secret.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("there is no such server")]
    Unknown,
    #[error("it is a program on this machine; only remote servers have a login")]
    NotRemote,
    #[error("its entry has an Authorization header, which is used instead of a login")]
    HasHeader,
    #[error("{0} is not https; a token would travel in the open")]
    Insecure(Url),
    #[error("it does not ask for a login")]
    NotWanted,
    #[error("its {what} is not an address that can be trusted: {address:?}")]
    Address { what: &'static str, address: String },
    #[error("{0}")]
    Failed(String),
    #[error("it was refused: {0}")]
    Refused(String),
    #[error("nobody came back from the browser within {} minutes", PATIENCE.as_secs() / 60)]
    TimedOut,
    #[error("no port to come back to: {0}")]
    Listener(std::io::Error),
    #[error("the login worked, but cannot be kept: {0}")]
    Keep(std::io::Error),
    #[error("no home is set, so there is nowhere to keep a login")]
    Homeless,
    #[error("its client secret: {0}")]
    Secret(String),
}

impl From<AuthError> for LoginError {
    fn from(error: AuthError) -> LoginError {
        LoginError::Failed(cut(&clean_line(&error.to_string()), 400))
    }
}

/// Logs in to a remote server and keeps the token. `show` gets the address that the user must
/// open, when we wait for them to come back.
pub async fn login(
    server: &ServerConfig,
    settings: &Settings,
    show: impl FnOnce(&Url),
) -> Result<LoggedIn, LoginError> {
    let TransportConfig::Remote(remote) = &server.transport else {
        return Err(LoginError::NotRemote);
    };
    if remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        return Err(LoginError::HasHeader);
    }
    if !web::may_send_to(&remote.url, &remote.url) {
        return Err(LoginError::Insecure(remote.url.clone()));
    }
    let home = settings.home.as_ref().ok_or(LoginError::Homeless)?;
    let store = Store::new(home, &server.name);
    let before = store.load(settings).await;
    let flow = Flow::begin(remote, settings, &before).await?;
    let grant = flow.finish(remote, show).await?;
    let (issuer, scopes) = (grant.issuer.clone(), grant.scopes.clone());
    let kept = Kept { grant: Some(grant), ..Kept::default() };
    let kept = store.save(kept, settings).await.map_err(LoginError::Keep)?;
    Ok(LoggedIn { issuer, scopes, is_in_keyring: kept.is_in_keyring })
}

/// Between the server's refusal and the browser.
struct Flow {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    client: OAuthClientConfig,
    scopes: Vec<String>,
    listener: Listener,
}

impl Flow {
    async fn begin(
        remote: &RemoteConfig,
        settings: &Settings,
        before: &Kept,
    ) -> Result<Flow, LoginError> {
        let mut refusal = refusal(remote, settings).await?;
        if let (None, Some((server, header))) = (&refusal, &before.challenge) {
            // Some servers refuse only what comes after the handshake.
            let known = (*server == remote.url).then(|| Challenge::read(header, server));
            refusal = known;
        }
        let http = LoginHttp::new(settings, &remote.url);
        let http = Arc::new(http.map_err(|error| LoginError::Failed(web::why(&error)))?);
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(remote.url.clone(), http).await?;
        let challenge = refusal.as_ref().and_then(Option::as_ref);
        let header = challenge.map(|challenge| challenge.header.as_str());
        let found = manager.resolve_metadata_from_challenge(header).await?;
        if refusal.is_none() && !found.source.is_discovered() {
            return Err(LoginError::NotWanted);
        }
        let metadata = found.metadata;
        check(&remote.url, &metadata)?;
        manager.set_metadata(metadata.clone());
        let mut scopes = wished(&remote.oauth, before, &remote.url);
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
        } else {
            add_offline_access(&mut scopes, &metadata);
        }
        let listener = Listener::bind(remote.oauth.callback_port).await;
        let listener = listener.map_err(LoginError::Listener)?;
        let place = listener.address();
        let client = client(&mut manager, &metadata, (remote, settings), &place, &scopes).await?;
        manager.configure_client(client.clone())?;
        Ok(Flow { manager, metadata, client, scopes, listener })
    }

    async fn finish(
        self,
        remote: &RemoteConfig,
        show: impl FnOnce(&Url),
    ) -> Result<Grant, LoginError> {
        let scopes: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        let address = self.manager.get_authorization_url(&scopes).await?;
        let address = for_browser(&remote.url, &address)?;
        let asked = |wanted: &str| {
            let mut pairs = address.query_pairs();
            pairs.find(|(key, _)| key == wanted).map(|(_, value)| value.into_owned())
        };
        let (state, resource) = (asked("state").unwrap_or_default(), asked("resource"));
        let waiting = self.listener.callback(state.clone());
        show(&address);
        let callback = timeout(PATIENCE, waiting).await.map_err(|_| LoginError::TimedOut)?;
        let (code, issuer) = match callback.map_err(LoginError::Listener)? {
            Callback::Code { code, issuer } => (code, issuer),
            Callback::Refused(why) => {
                return Err(LoginError::Refused(cut(&clean_line(&why), 300)));
            }
        };
        let exchanged =
            self.manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref());
        let answer = serde_json::to_value(exchanged.await?).unwrap_or_default();
        let tokens = Tokens::read(&answer)
            .ok_or_else(|| LoginError::Failed("it gave no token that we can use".to_owned()))?;
        let token_endpoint = &self.metadata.token_endpoint;
        let mut grant = Grant {
            server: remote.url.clone(),
            issuer: self.metadata.issuer.clone(),
            resource: resource.unwrap_or_else(|| remote.url.to_string()),
            token_endpoint: trusted(&remote.url, "token endpoint", token_endpoint)?,
            client_id: self.client.client_id,
            client_secret: self.client.client_secret,
            is_secret_in_body: is_secret_in_body(&self.metadata),
            scopes: self.scopes,
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
        };
        grant.take(tokens);
        Ok(grant)
    }
}

/// Asks without a token. `None`: it was not refused. `Some(None)`: it was, without a challenge.
async fn refusal(
    remote: &RemoteConfig,
    settings: &Settings,
) -> Result<Option<Option<Challenge>>, LoginError> {
    let failed = |error: reqwest::Error| LoginError::Failed(web::why(&error));
    let client = web::client(settings).map_err(failed)?;
    let probe = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "codexec", "version": env!("CARGO_PKG_VERSION")},
    }});
    let request = client.post(remote.url.clone()).timeout(PROBE);
    let request = request.header(CONTENT_TYPE, "application/json");
    let request = request.header(ACCEPT, "application/json, text/event-stream");
    let response = request.body(probe.to_string()).send().await.map_err(failed)?;
    if !matches!(response.status().as_u16(), 401 | 403) {
        return Ok(None);
    }
    Ok(Some(challenge_in(response.headers(), &remote.url)))
}

fn challenge_in(headers: &HeaderMap, server: &Url) -> Option<Challenge> {
    let headers = headers.get_all(WWW_AUTHENTICATE).into_iter();
    headers.filter_map(|header| header.to_str().ok()).find_map(|it| Challenge::read(it, server))
}

/// What the user's file wants, or else what an earlier login had and what was missing then.
fn wished(oauth: &OAuthConfig, before: &Kept, server: &Url) -> Vec<String> {
    let had = before.grant.iter().filter(|grant| grant.server == *server);
    let had = had.flat_map(|grant| &grant.scopes).filter(|_| !before.wanted.is_empty());
    let mut scopes = Vec::new();
    for scope in oauth.scopes.iter().chain(had).chain(&before.wanted) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    scopes
}

/// Without it, many servers give no token to renew the login with.
fn add_offline_access(scopes: &mut Vec<String>, metadata: &AuthorizationMetadata) {
    const OFFLINE: &str = "offline_access";
    let is_known = metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE);
    if is_known && !scopes.iter().any(|scope| scope == OFFLINE) {
        scopes.push(OFFLINE.to_owned());
    }
}

/// Who we are to the authorization server: who the user's file says, by a document that it can
/// read, or whoever it makes us.
async fn client(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    (remote, settings): (&RemoteConfig, &Settings),
    place: &str,
    scopes: &[String],
) -> Result<OAuthClientConfig, LoginError> {
    let oauth = &remote.oauth;
    let can_read = metadata.additional_fields.get("client_id_metadata_document_supported");
    let can_read = can_read.and_then(serde_json::Value::as_bool).unwrap_or(false);
    if let Some(id) = &oauth.client_id {
        let is_document = Url::parse(id).is_ok_and(|id| id.scheme() == "https" && id.path() != "/");
        if !is_document || can_read {
            let mut client = OAuthClientConfig::new(id, place);
            if let Some(secret) = oauth.client_secret.as_ref().filter(|_| !is_document) {
                let secret = secret.resolve(settings).await;
                let secret = secret.map_err(|error| LoginError::Secret(error.to_string()))?;
                client = client.with_client_secret(secret);
            }
            return Ok(client);
        }
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    Ok(manager.register_client("codexec", place, &scopes).await?)
}

fn is_secret_in_body(metadata: &AuthorizationMetadata) -> bool {
    let methods = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let methods = methods.and_then(serde_json::Value::as_array);
    let has = |wanted: &str| methods.into_iter().flatten().any(|it| it.as_str() == Some(wanted));
    has("client_secret_post") && !has("client_secret_basic")
}

fn check(server: &Url, metadata: &AuthorizationMetadata) -> Result<(), LoginError> {
    for_browser(server, &metadata.authorization_endpoint)?;
    trusted(server, "token endpoint", &metadata.token_endpoint)?;
    if let Some(place) = &metadata.registration_endpoint {
        trusted(server, "registration endpoint", place)?;
    }
    Ok(())
}

fn trusted(server: &Url, what: &'static str, address: &str) -> Result<Url, LoginError> {
    let wrong = || LoginError::Address { what, address: cut(&clean_line(address), 100) };
    let url = Url::parse(address).map_err(|_| wrong())?;
    if web::may_send_to(server, &url) { Ok(url) } else { Err(wrong()) }
}

/// THREAT[REM-5]: what is opened in a browser, or printed for one, is an address of the web and
/// nothing else: no other scheme, nothing that a shell or a terminal would act on.
fn for_browser(server: &Url, address: &str) -> Result<Url, LoginError> {
    const WHAT: &str = "authorization endpoint";
    let wrong = || LoginError::Address { what: WHAT, address: cut(&clean_line(address), 100) };
    let is_plain = address.len() <= ADDRESS_BYTES
        && address.bytes().all(|byte| byte.is_ascii_graphic())
        && !address
            .contains(['"', '\'', '`', '\\', '<', '>', '^', '|', '{', '}', '$', ';', '(', ')']);
    if is_plain { trusted(server, WHAT, address) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests;
