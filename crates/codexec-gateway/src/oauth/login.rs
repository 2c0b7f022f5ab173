//! The OAuth login flow, from the server's challenge to a stored token.

use std::{sync::Arc, time::Duration};

use codexec_mcp_config::{OAuthConfig, RemoteConfig, ServerConfig, TransportConfig};
use codexec_types::{clean_line, cut_text};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig,
};
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::{
    challenge::Challenge,
    grant::{TokenGrant, TokenResponse},
    http::LoginHttp,
    listener::{Callback, CallbackListener},
    store::{LoginStore, StoredLogin},
};
use crate::{GatewaySettings, secret::resolve_secret, web};

/// How long the user may take in the browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(300);
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
const URL_BYTES: usize = 8 << 10;

/// The result of a successful login.
#[derive(Clone, Debug, PartialEq)]
pub struct LoginSummary {
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// The token is in the desktop's keyring, not in a file.
    pub is_in_keyring: bool,
}

/// The reason why a login failed. Never contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("there is no such server")]
    Unknown,
    #[error("it is a local program; only remote servers have a login")]
    NotRemote,
    #[error("its entry has an Authorization header, which is used instead of a login")]
    HasHeader,
    #[error("{0} is not https; the token would be sent unencrypted")]
    Insecure(Url),
    #[error("the server does not ask for a login")]
    NotRequired,
    #[error("its {what} is not a trusted URL: {address:?}")]
    Address { what: &'static str, address: String },
    #[error("{0}")]
    Failed(String),
    #[error("the login was refused: {0}")]
    Refused(String),
    #[error(
        "login timed out: no redirect from the browser within {} minutes",
        BROWSER_TIMEOUT.as_secs() / 60
    )]
    TimedOut,
    #[error("cannot listen for the browser's redirect: {0}")]
    Listener(std::io::Error),
    #[error("the login succeeded, but its token cannot be stored: {0}")]
    Store(std::io::Error),
    #[error("no home directory is set, so the token cannot be stored")]
    NoHome,
    #[error("the client secret cannot be read: {0}")]
    Secret(String),
}

impl From<AuthError> for LoginError {
    fn from(error: AuthError) -> LoginError {
        LoginError::Failed(cut_text(&clean_line(&error.to_string()), 400))
    }
}

/// Logs in to a remote server and stores the token. `show` gets the URL that the user must open;
/// by then the redirect can be received.
pub async fn login(
    server: &ServerConfig,
    settings: &GatewaySettings,
    show: impl FnOnce(&Url),
) -> Result<LoginSummary, LoginError> {
    let TransportConfig::Remote(remote) = &server.transport else {
        return Err(LoginError::NotRemote);
    };
    if remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        return Err(LoginError::HasHeader);
    }
    if !web::is_allowed_target(&remote.url, &remote.url) {
        return Err(LoginError::Insecure(remote.url.clone()));
    }
    let home = settings.home.as_ref().ok_or(LoginError::NoHome)?;
    let store = LoginStore::new(home, &server.name);
    let before = store.load(settings).await;
    let flow = LoginFlow::begin(remote, settings, &before).await?;
    let grant = flow.finish(remote, show).await?;
    let (issuer, scopes) = (grant.issuer.clone(), grant.scopes.clone());
    let login = StoredLogin { grant: Some(grant), ..StoredLogin::default() };
    let login = store.save(login, settings).await.map_err(LoginError::Store)?;
    Ok(LoginSummary { issuer, scopes, is_in_keyring: login.is_in_keyring })
}

/// A login that is ready for the browser: metadata and client are known, the listener is bound.
struct LoginFlow {
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    client: OAuthClientConfig,
    scopes: Vec<String>,
    listener: CallbackListener,
}

impl LoginFlow {
    async fn begin(
        remote: &RemoteConfig,
        settings: &GatewaySettings,
        before: &StoredLogin,
    ) -> Result<LoginFlow, LoginError> {
        let mut refusal = probe(remote, settings).await?;
        if let (None, Some((server, header))) = (&refusal, &before.challenge) {
            // Some servers only refuse requests after the handshake.
            refusal = (*server == remote.url).then(|| Challenge::read(header, server));
        }
        let http = LoginHttp::new(settings, &remote.url);
        let http = Arc::new(http.map_err(|error| LoginError::Failed(web::describe_error(&error)))?);
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(remote.url.clone(), http).await?;
        let challenge = refusal.as_ref().and_then(Option::as_ref);
        let header = challenge.map(|challenge| challenge.header.as_str());
        let found = manager.resolve_metadata_from_challenge(header).await?;
        if refusal.is_none() && !found.source.is_discovered() {
            return Err(LoginError::NotRequired);
        }
        let metadata = found.metadata;
        check_endpoints(&remote.url, &metadata)?;
        manager.set_metadata(metadata.clone());
        let mut scopes = requested_scopes(&remote.oauth, before, &remote.url);
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
        } else {
            add_offline_access(&mut scopes, &metadata);
        }
        let listener = CallbackListener::bind(remote.oauth.callback_port).await;
        let listener = listener.map_err(LoginError::Listener)?;
        let redirect = listener.redirect_uri();
        let client =
            oauth_client(&mut manager, &metadata, (remote, settings), &redirect, &scopes).await?;
        manager.configure_client(client.clone())?;
        Ok(LoginFlow { manager, metadata, client, scopes, listener })
    }

    async fn finish(
        self,
        remote: &RemoteConfig,
        show: impl FnOnce(&Url),
    ) -> Result<TokenGrant, LoginError> {
        let scopes: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        let address = self.manager.get_authorization_url(&scopes).await?;
        let address = check_browser_url(&remote.url, &address)?;
        let parameter = |name: &str| {
            let mut pairs = address.query_pairs();
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let (state, resource) = (parameter("state").unwrap_or_default(), parameter("resource"));
        let waiting = self.listener.wait(state.clone());
        show(&address);
        let callback = timeout(BROWSER_TIMEOUT, waiting).await.map_err(|_| LoginError::TimedOut)?;
        let (code, issuer) = match callback.map_err(LoginError::Listener)? {
            Callback::Code { code, issuer } => (code, issuer),
            Callback::Refused(why) => {
                return Err(LoginError::Refused(cut_text(&clean_line(&why), 300)));
            }
        };
        let exchanged =
            self.manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref());
        let answer = serde_json::to_value(exchanged.await?).unwrap_or_default();
        let tokens = TokenResponse::read(&answer)
            .ok_or_else(|| LoginError::Failed("the server sent no usable token".to_owned()))?;
        let token_endpoint = &self.metadata.token_endpoint;
        let mut grant = TokenGrant {
            server: remote.url.clone(),
            issuer: self.metadata.issuer.clone(),
            resource: resource.unwrap_or_else(|| remote.url.to_string()),
            token_endpoint: check_endpoint(&remote.url, "token endpoint", token_endpoint)?,
            client_id: self.client.client_id,
            client_secret: self.client.client_secret,
            is_secret_in_body: is_secret_in_body(&self.metadata),
            scopes: self.scopes,
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
        };
        grant.update(tokens);
        Ok(grant)
    }
}

/// Sends a request without a token. Returns `None` if the server accepts it, and `Some(None)` if
/// the server refuses it without a challenge.
async fn probe(
    remote: &RemoteConfig,
    settings: &GatewaySettings,
) -> Result<Option<Option<Challenge>>, LoginError> {
    let failed = |error: reqwest::Error| LoginError::Failed(web::describe_error(&error));
    let client = web::build_client(settings).map_err(failed)?;
    let probe = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "codexec", "version": env!("CARGO_PKG_VERSION")},
    }});
    let request = client.post(remote.url.clone()).timeout(PROBE_TIMEOUT);
    let request = request.header(CONTENT_TYPE, "application/json");
    let request = request.header(ACCEPT, "application/json, text/event-stream");
    let response = request.body(probe.to_string()).send().await.map_err(failed)?;
    if !matches!(response.status().as_u16(), 401 | 403) {
        return Ok(None);
    }
    Ok(Some(find_challenge(response.headers(), &remote.url)))
}

fn find_challenge(headers: &HeaderMap, server: &Url) -> Option<Challenge> {
    let headers = headers.get_all(WWW_AUTHENTICATE).into_iter();
    headers.filter_map(|header| header.to_str().ok()).find_map(|it| Challenge::read(it, server))
}

/// Returns the scopes of the config, those that the server found missing, and in that case also
/// those of the earlier login.
fn requested_scopes(oauth: &OAuthConfig, before: &StoredLogin, server: &Url) -> Vec<String> {
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

/// Adds `offline_access`: without it, many servers send no refresh token.
fn add_offline_access(scopes: &mut Vec<String>, metadata: &AuthorizationMetadata) {
    const OFFLINE: &str = "offline_access";
    let is_supported = metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE);
    if is_supported && !scopes.iter().any(|scope| scope == OFFLINE) {
        scopes.push(OFFLINE.to_owned());
    }
}

/// Returns codexec's OAuth client: the configured client id, which may be the URL of a metadata
/// document if the server supports that, or a dynamically registered client.
async fn oauth_client(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    (remote, settings): (&RemoteConfig, &GatewaySettings),
    redirect: &str,
    scopes: &[String],
) -> Result<OAuthClientConfig, LoginError> {
    let oauth = &remote.oauth;
    let reads_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    let reads_documents = reads_documents.and_then(serde_json::Value::as_bool).unwrap_or(false);
    if let Some(id) = &oauth.client_id {
        let is_document = Url::parse(id).is_ok_and(|id| id.scheme() == "https" && id.path() != "/");
        if !is_document || reads_documents {
            let mut client = OAuthClientConfig::new(id, redirect);
            if let Some(secret) = oauth.client_secret.as_ref().filter(|_| !is_document) {
                let secret = resolve_secret(secret, settings).await;
                let secret = secret.map_err(|error| LoginError::Secret(error.to_string()))?;
                client = client.with_client_secret(secret);
            }
            return Ok(client);
        }
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    Ok(manager.register_client("codexec", redirect, &scopes).await?)
}

fn is_secret_in_body(metadata: &AuthorizationMetadata) -> bool {
    let methods = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let methods = methods.and_then(serde_json::Value::as_array);
    let has = |method: &str| methods.into_iter().flatten().any(|it| it.as_str() == Some(method));
    has("client_secret_post") && !has("client_secret_basic")
}

fn check_endpoints(server: &Url, metadata: &AuthorizationMetadata) -> Result<(), LoginError> {
    check_browser_url(server, &metadata.authorization_endpoint)?;
    check_endpoint(server, "token endpoint", &metadata.token_endpoint)?;
    if let Some(endpoint) = &metadata.registration_endpoint {
        check_endpoint(server, "registration endpoint", endpoint)?;
    }
    Ok(())
}

fn check_endpoint(server: &Url, what: &'static str, address: &str) -> Result<Url, LoginError> {
    let error = || LoginError::Address { what, address: cut_text(&clean_line(address), 100) };
    let url = Url::parse(address).map_err(|_| error())?;
    if web::is_allowed_target(server, &url) { Ok(url) } else { Err(error()) }
}

/// THREAT[REM-5]: a URL that is opened in a browser, or printed for one, must be a web address
/// without other schemes and without characters that a shell or a terminal would act on.
fn check_browser_url(server: &Url, address: &str) -> Result<Url, LoginError> {
    const WHAT: &str = "authorization endpoint";
    let error = || LoginError::Address { what: WHAT, address: cut_text(&clean_line(address), 100) };
    let is_harmless = address.len() <= URL_BYTES
        && address.bytes().all(|byte| byte.is_ascii_graphic())
        && !address
            .contains(['"', '\'', '`', '\\', '<', '>', '^', '|', '{', '}', '$', ';', '(', ')']);
    if is_harmless { check_endpoint(server, WHAT, address) } else { Err(error()) }
}

#[cfg(test)]
mod tests;
