//! One server's login, as long as a connection to it needs one.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use codexec_types::ServerName;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use tokio::sync::Semaphore;
use url::{Url, form_urlencoded};

use super::{
    challenge::Challenge,
    grant::{Grant, Tokens},
    store::{Kept, Stamp, Store},
};
use crate::{Settings, web};

const RENEWAL: Duration = Duration::from_secs(30);
const ANSWER_BYTES: usize = 256 << 10;
/// What a server may make the next login ask for.
const SCOPES: usize = 50;

pub(crate) struct Account {
    name: ServerName,
    server: Url,
    settings: Arc<Settings>,
    /// `None`: nothing is kept, so nothing is known.
    store: Option<Store>,
    known: Mutex<Known>,
    /// One renewal at a time; the others wait for what it gives.
    renewals: Semaphore,
}

#[derive(Default)]
struct Known {
    stamp: Stamp,
    kept: Kept,
}

impl Account {
    pub(crate) fn new(name: &ServerName, server: &Url, settings: &Arc<Settings>) -> Account {
        Account {
            name: name.clone(),
            server: server.clone(),
            settings: settings.clone(),
            store: settings.home.as_ref().map(|home| Store::new(home, name)),
            known: Mutex::default(),
            renewals: Semaphore::new(1),
        }
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.name
    }

    /// What to show the server; `None` before a login.
    pub(crate) async fn token(&self) -> Option<String> {
        let grant = self.grant().await?;
        if !grant.is_stale() || grant.refresh_token.is_none() {
            return Some(grant.access_token);
        }
        // A token that ends soon is still better than none.
        Some(self.renewed(&grant.access_token).await.unwrap_or(grant.access_token))
    }

    /// A new token in place of one that was refused or ends; `None` when there is none to be had.
    pub(crate) async fn renewed(&self, old: &str) -> Option<String> {
        let _turn = self.renewals.acquire().await.ok()?;
        let store = self.store.clone()?;
        let lock = tokio::task::spawn_blocking(move || store.lock().ok()).await.ok().flatten();
        // Somebody else may have renewed it, or logged in again.
        self.known().stamp = None;
        let mut grant = self.grant().await?;
        if grant.access_token == old {
            let answer = self.ask_for_renewal(&grant).await?;
            grant.take(Tokens::read(&answer)?);
            self.keep(|kept| kept.grant = Some(grant.clone())).await;
        }
        drop(lock);
        Some(grant.access_token)
    }

    /// Remembers what a server wants, for the next login.
    pub(crate) async fn note(&self, challenge: &Challenge) {
        let has_grant = self.grant().await.is_some();
        let before = self.known().kept.clone();
        let mut kept = before.clone();
        if challenge.is_about_scope && has_grant {
            kept.wanted.extend(challenge.scopes.iter().take(SCOPES).cloned());
            kept.wanted.sort();
            kept.wanted.dedup();
            kept.wanted.truncate(SCOPES);
        } else {
            kept.challenge = Some((self.server.clone(), challenge.header.clone()));
        }
        if kept != before {
            self.keep(|it| *it = kept).await;
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The grant of now, if it is for this very server.
    async fn grant(&self) -> Option<Grant> {
        self.refresh_known().await;
        self.known().kept.grant.clone().filter(|grant| grant.server == self.server)
    }

    async fn refresh_known(&self) {
        let Some(store) = &self.store else { return };
        let stamp = store.stamp();
        let is_new = { self.known().stamp != stamp };
        if is_new {
            let kept = store.load(&self.settings).await;
            *self.known() = Known { stamp, kept };
        }
    }

    async fn keep(&self, change: impl FnOnce(&mut Kept)) {
        let Some(store) = &self.store else { return };
        let mut kept = self.known().kept.clone();
        change(&mut kept);
        match store.save(kept.clone(), &self.settings).await {
            Ok(saved) => kept = saved,
            Err(error) => tracing::warn!(server = %self.name, %error, "a login could not be kept"),
        }
        *self.known() = Known { stamp: store.stamp(), kept };
    }

    async fn ask_for_renewal(&self, grant: &Grant) -> Option<serde_json::Value> {
        let refresh_token = grant.refresh_token.as_ref()?;
        if !web::may_send_to(&self.server, &grant.token_endpoint) {
            return None;
        }
        let client = web::distant_client(&self.settings, &self.server).ok()?;
        let (credential, form) = renewal_of(grant, refresh_token);
        let mut request = client.post(grant.token_endpoint.clone()).timeout(RENEWAL);
        if let Some(credential) = credential {
            request = request.header(AUTHORIZATION, credential);
        }
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.header(ACCEPT, "application/json").body(form);
        let response = request.send().await.ok()?;
        let status = response.status();
        if !status.is_success() {
            tracing::info!(server = %self.name, %status, "its login was not renewed");
            return None;
        }
        let body = web::body(response, ANSWER_BYTES).await.ok()?;
        serde_json::from_slice(&body).ok()
    }
}

/// A header that says who we are, if the secret goes there, and the form.
fn renewal_of(grant: &Grant, refresh_token: &str) -> (Option<String>, String) {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token");
    form.append_pair("refresh_token", refresh_token);
    form.append_pair("resource", &grant.resource);
    let mut credential = None;
    match &grant.client_secret {
        Some(secret) if !grant.is_secret_in_body => {
            let pair = format!("{}:{}", encoded(&grant.client_id), encoded(secret));
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

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
