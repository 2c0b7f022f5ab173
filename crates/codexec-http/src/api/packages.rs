//! Packages of Python and Node.js.

use codexec_functions::OwnFunction;
use codexec_types::Language;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, ApiError, ApiRequest, call_function, ok};
use crate::error::{HttpError, json_response};

pub(super) async fn list(mut request: ApiRequest<'_>) -> Answer {
    let arguments = std::mem::take(&mut request.query);
    let mut listed = call_function(&request, OwnFunction::ListPackages, arguments).await?;
    let items = listed.get_mut("packages").map(Value::take).unwrap_or_default();
    ok(&json!({"items": items}))
}

/// Installs a package into a session, or for all code.
///
/// THREAT[HTTP-10]: what is installed for all code runs in everybody's, so it needs that scope.
pub(super) async fn install(mut request: ApiRequest<'_>) -> Answer {
    let arguments = std::mem::take(&mut request.body);
    let is_for_all = arguments.get("session_id").is_none_or(Value::is_null);
    if is_for_all && !request.connection().sees_settings() {
        return Err(HttpError::Scope("everyone".to_owned()).into());
    }
    let installed = call_function(&request, OwnFunction::InstallPackage, arguments).await?;
    Ok(json_response(StatusCode::CREATED, &installed.into()))
}

pub(super) async fn remove(request: ApiRequest<'_>) -> Answer {
    let language = Language::parse(request.path(0));
    let language = language.ok_or_else(|| ApiError::not_found("there is no such language"))?;
    let client = request.client();
    let removed = request.app().remove_package(language, request.path(1), &client).await?;
    ok(&json!({"package": removed.0, "version": removed.1}))
}
