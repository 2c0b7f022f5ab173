//! The login of one server, used and renewed by a connection to it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use codexec_files::FileStamp;
use codexec_types::ServerName;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use tokio::sync::Semaphore;
use url::{Url, form_urlencoded};

use super::{
    challenge::Challenge,
    grant::{TokenGrant, TokenResponse},
    store::{LoginStore, StoredLogin},
};
use crate::{GatewaySettings, web};

const RENEWAL_TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER_BYTES: usize = 256 << 10;
/// Maximum number of scopes that a server can add to the next login.
const MAX_SCOPES: usize = 50;

/// The OAuth login of one server.
pub(crate) struct Account {
    name: ServerName,
    server: Url,
    settings: Arc<GatewaySettings>,
    /// `None` if there is no home directory: no login is stored or loaded.
    store: Option<LoginStore>,
    loaded: Mutex<LoadedLogin>,
    /// Allows one renewal at a time; other callers wait for its token.
    renewals: Semaphore,
}

/// The stored login as last loaded, and the stamp of its file.
#[derive(Default)]
struct LoadedLogin {
    stamp: Option<FileStamp>,
    login: StoredLogin,
}

impl Account {
    pub(crate) fn new(name: &ServerName, server: &Url, settings: &Arc<GatewaySettings>) -> Account {
        Account {
            name: name.clone(),
            server: server.clone(),
            settings: settings.clone(),
            store: settings.home.as_ref().map(|home| LoginStore::new(home, name)),
            loaded: Mutex::default(),
            renewals: Semaphore::new(1),
        }
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns the access token for the server, renewed if it expires soon; `None` before a login.
    pub(crate) async fn access_token(&self) -> Option<String> {
        let grant = self.grant().await?;
        if !grant.is_stale() || grant.refresh_token.is_none() {
            return Some(grant.access_token);
        }
        // A token that expires soon is still better than none.
        Some(self.renew_token(&grant.access_token).await.unwrap_or(grant.access_token))
    }

    /// Replaces a token that was rejected or expires; returns `None` if that fails.
    pub(crate) async fn renew_token(&self, old: &str) -> Option<String> {
        let _permit = self.renewals.acquire().await.ok()?;
        let store = self.store.clone()?;
        let lock = tokio::task::spawn_blocking(move || store.lock().ok()).await.ok().flatten();
        // Another process may have renewed the token or logged in again.
        self.lock_loaded().stamp = None;
        let mut grant = self.grant().await?;
        if grant.access_token == old {
            let answer = self.request_renewal(&grant).await?;
            grant.update(TokenResponse::read(&answer)?);
            self.save(|login| login.grant = Some(grant.clone())).await;
        }
        drop(lock);
        Some(grant.access_token)
    }

    /// Stores what the server asks for, for the next login.
    pub(crate) async fn record_challenge(&self, challenge: &Challenge) {
        let has_grant = self.grant().await.is_some();
        let before = self.lock_loaded().login.clone();
        let mut login = before.clone();
        if challenge.is_about_scope && has_grant {
            login.wanted.extend(challenge.scopes.iter().take(MAX_SCOPES).cloned());
            login.wanted.sort();
            login.wanted.dedup();
            login.wanted.truncate(MAX_SCOPES);
        } else {
            login.challenge = Some((self.server.clone(), challenge.header.clone()));
        }
        if login != before {
            self.save(|stored| *stored = login).await;
        }
    }

    fn lock_loaded(&self) -> std::sync::MutexGuard<'_, LoadedLogin> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current grant, if it was made for this server's URL.
    async fn grant(&self) -> Option<TokenGrant> {
        self.reload_if_changed().await;
        self.lock_loaded().login.grant.clone().filter(|grant| grant.server == self.server)
    }

    async fn reload_if_changed(&self) {
        let Some(store) = &self.store else { return };
        let stamp = store.stamp();
        let is_new = { self.lock_loaded().stamp != stamp };
        if is_new {
            let login = store.load(&self.settings).await;
            *self.lock_loaded() = LoadedLogin { stamp, login };
        }
    }

    async fn save(&self, change: impl FnOnce(&mut StoredLogin)) {
        let Some(store) = &self.store else { return };
        let mut login = self.lock_loaded().login.clone();
        change(&mut login);
        match store.save(login.clone(), &self.settings).await {
            Ok(saved) => login = saved,
            Err(error) => tracing::warn!(server = %self.name, %error, "login could not be stored"),
        }
        *self.lock_loaded() = LoadedLogin { stamp: store.stamp(), login };
    }

    async fn request_renewal(&self, grant: &TokenGrant) -> Option<serde_json::Value> {
        let refresh_token = grant.refresh_token.as_ref()?;
        if !web::is_allowed_target(&self.server, &grant.token_endpoint) {
            return None;
        }
        let client = web::build_restricted_client(&self.settings, &self.server).ok()?;
        let (credential, form) = renewal_request(grant, refresh_token);
        let mut request = client.post(grant.token_endpoint.clone()).timeout(RENEWAL_TIMEOUT);
        if let Some(credential) = credential {
            request = request.header(AUTHORIZATION, credential);
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.header(ACCEPT, "application/json").body(form);
        let response = request.send().await.ok()?;
        let status = response.status();
        if !status.is_success() {
            tracing::info!(server = %self.name, %status, "token renewal was refused");
            return None;
        }
        let body = web::read_body(response, ANSWER_BYTES).await.ok()?;
        serde_json::from_slice(&body).ok()
    }
}

/// Returns the `Authorization` header, if the client secret goes there, and the form body.
fn renewal_request(grant: &TokenGrant, refresh_token: &str) -> (Option<String>, String) {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token");
    form.append_pair("refresh_token", refresh_token);
    form.append_pair("resource", &grant.resource);
    let mut credential = None;
    match &grant.client_secret {
        Some(secret) if !grant.is_secret_in_body => {
            let pair = format!("{}:{}", url_encode(&grant.client_id), url_encode(secret));
            credential = Some(format!("Basic {}", BASE64_STANDARD.encode(pair)));
        }
        Some(secret) => {
            form.append_pair("client_id", &grant.client_id);
            form.append_pair("client_secret", secret);
        }
        None => {
            form.append_pair("client_id", &grant.client_id);
        }
    }
    (credential, form.finish())
}

fn url_encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
