//! Tokens: list, make, revoke.

use std::time::{Duration, SystemTime};

use codexec_server::Fields;
use codexec_types::format_rfc3339;
use http::StatusCode;
use serde_json::{Value, json};

use super::execution_view::without_nulls;
use super::{Answer, ApiError, ApiRequest, ok};
use crate::error::json_response;
use crate::tokens::{TokenError, TokenFile, TokenRecord};

const MAX_EXPIRY_S: u64 = 10 * 365 * 24 * 60 * 60;

pub(super) async fn list(request: ApiRequest<'_>) -> Answer {
    let tokens = with_file(&request, TokenFile::list).await?;
    let items: Vec<Value> = tokens.iter().map(view).collect();
    ok(&json!({"items": items}))
}

/// Makes a token. Its text is in this answer, and nowhere else.
pub(super) async fn create(mut request: ApiRequest<'_>) -> Answer {
    check_unrestricted(&request)?;
    let mut fields = Fields::new(std::mem::take(&mut request.body));
    let name = fields.required_text("name")?;
    let scopes = fields.texts("scopes")?.unwrap_or_default();
    let after = fields.number("expires_in_s", 1..=MAX_EXPIRY_S)?.map(Duration::from_secs);
    fields.finish()?;
    let expires = after.and_then(|after| SystemTime::now().checked_add(after));
    let made = name.clone();
    let token = with_file(&request, move |file| file.create(&made, &scopes, expires)).await?;
    Ok(json_response(StatusCode::CREATED, &json!({"name": name, "token": token})))
}

pub(super) async fn revoke(request: ApiRequest<'_>) -> Answer {
    check_unrestricted(&request)?;
    let name = request.path(0).to_owned();
    let revoked = name.clone();
    with_file(&request, move |file| file.revoke(&revoked)).await?;
    ok(&json!({"name": name}))
}

/// THREAT[HTTP-14]: a token with narrow scopes cannot make one with wide scopes.
fn check_unrestricted(request: &ApiRequest<'_>) -> Result<(), ApiError> {
    match request.connection().is_unrestricted() {
        true => Ok(()),
        false => {
            let message = "a token whose scopes narrow it cannot make or revoke tokens";
            Err(ApiError::new(StatusCode::FORBIDDEN, "SCOPE_MISSING", message))
        }
    }
}

/// Reads or writes the files of tokens, outside of the event loop.
async fn with_file<T: Send + 'static>(
    request: &ApiRequest<'_>,
    work: impl FnOnce(&TokenFile) -> Result<T, TokenError> + Send + 'static,
) -> Result<T, ApiError> {
    let file = request.edge.tokens.file().clone();
    let done = tokio::task::spawn_blocking(move || work(&file)).await;
    Ok(done.map_err(|_| ApiError::internal())??)
}

fn view(token: &TokenRecord) -> Value {
    without_nulls(json!({
        "name": token.name.as_str(),
        "scopes": token.scopes,
        "created": format_rfc3339(token.created),
        "expires": token.expires.map(format_rfc3339),
        "is_expired": token.is_expired(SystemTime::now()),
    }))
}
