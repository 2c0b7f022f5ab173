//! Errors for HTTP statuses that are not a success.

use std::time::Duration;

use codexec_types::{clean_line, cut_text};
use reqwest::{
    Response, StatusCode,
    header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE},
};

use super::link::RemoteLink;
use crate::{
    oauth::{Account, Challenge},
    upstream::UpstreamError,
};

/// Limits for the pause that a server can request.
const USUAL_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// Returns the error that the status and headers determine, or `None` if the body may say more.
pub(super) fn from_status(
    link: &RemoteLink,
    response: &Response,
    has_session: bool,
) -> Option<UpstreamError> {
    let status = response.status();
    match status {
        StatusCode::UNAUTHORIZED => Some(link.login_error("it requires a login")),
        StatusCode::FORBIDDEN if read_challenge(response).is_some_and(|it| it.is_about_scope) => {
            Some(link.login_error("it requires more rights than the login grants"))
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Some(UpstreamError::Busy { retry_after: retry_after(response) })
        }
        StatusCode::NOT_FOUND if has_session => {
            Some(UpstreamError::Ended("its session is over".to_owned()))
        }
        _ if status.is_redirection() => Some(UpstreamError::Refused(redirect_message(response))),
        _ => None,
    }
}

/// Describes a body that is not an MCP message.
pub(super) fn from_body(status: StatusCode, body: &[u8]) -> UpstreamError {
    let text = cut_text(&clean_line(&String::from_utf8_lossy(body)), 200);
    let is_page = text.trim_start().starts_with('<');
    UpstreamError::Refused(if text.trim().is_empty() || is_page {
        format!("it answered with HTTP {status}")
    } else {
        format!("it answered with HTTP {status}: {text}")
    })
}

pub(super) fn read_challenge(response: &Response) -> Option<Challenge> {
    let headers = response.headers().get_all(WWW_AUTHENTICATE).into_iter();
    headers
        .filter_map(|header| header.to_str().ok())
        .find_map(|it| Challenge::read(it, response.url()))
}

/// Remembers the scopes that a refusal asks for, for the next login.
pub(super) async fn remember_scopes(response: &Response, account: &Account) {
    let is_refused = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_refused && let Some(challenge) = read_challenge(response) {
        account.record_challenge(&challenge).await;
    }
}

/// Reads the pause in seconds. The date form is rare and not supported.
fn retry_after(response: &Response) -> Duration {
    let value = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let seconds = value.and_then(|value| value.trim().parse().ok());
    seconds.map_or(USUAL_WAIT, Duration::from_secs).min(LONGEST_WAIT)
}

fn redirect_message(response: &Response) -> String {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let target = location.and_then(|to| response.url().join(to).ok());
    match target {
        Some(target) => format!(
            "it redirects to another origin ({}); put that address in its entry if you trust it",
            cut_text(&clean_line(&target.origin().ascii_serialization()), 100),
        ),
        None => "it redirects without a valid address".to_owned(),
    }
}
