//! Saved scripts and their versions.

use codexec_functions::OwnFunction;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, ApiRequest, call_function, ok};
use crate::error::json_response;

/// Lists scripts by name, or searches them if there is a query.
pub(super) async fn list(mut request: ApiRequest<'_>) -> Answer {
    let arguments = std::mem::take(&mut request.query);
    let (function, field) = match arguments.contains_key("query") {
        true => (OwnFunction::SearchScripts, "results"),
        false => (OwnFunction::ListScripts, "scripts"),
    };
    let mut found = call_function(&request, function, arguments).await?;
    let items = found.get_mut(field).map(Value::take).unwrap_or_default();
    ok(&json!({"items": items}))
}

pub(super) async fn save(mut request: ApiRequest<'_>) -> Answer {
    let arguments = std::mem::take(&mut request.body);
    let mut saved = call_function(&request, OwnFunction::SaveScript, arguments).await?;
    // The place on the disk is nobody's business.
    saved.shift_remove("path");
    Ok(json_response(StatusCode::CREATED, &saved.into()))
}

pub(super) async fn get(request: ApiRequest<'_>) -> Answer {
    let mut arguments = request.query.clone();
    arguments.insert("name".to_owned(), request.path(0).into());
    ok(&call_function(&request, OwnFunction::GetScript, arguments).await?.into())
}

pub(super) async fn versions(request: ApiRequest<'_>) -> Answer {
    let arguments = [("name".to_owned(), request.path(0).into())].into_iter().collect();
    let mut listed = call_function(&request, OwnFunction::ListScriptVersions, arguments).await?;
    let items = listed.get_mut("versions").map(Value::take).unwrap_or_default();
    ok(&json!({"items": items}))
}

pub(super) async fn delete(request: ApiRequest<'_>) -> Answer {
    let arguments = [("name".to_owned(), request.path(0).into())].into_iter().collect();
    ok(&call_function(&request, OwnFunction::DeleteScript, arguments).await?.into())
}
