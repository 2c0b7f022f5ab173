//! The readable page of the API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use codexec_server::mcp::HttpBody;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::openapi;

const STYLE: &str = include_str!("page.css");
/// Returns the page. It has no secrets, so it needs no token.
pub(crate) fn page() -> Response<HttpBody> {
    let html = write(&openapi::document());
    let mut response = Response::new(Full::new(Bytes::from(html)).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(policy) = HeaderValue::from_str(&policy()) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Nothing is loaded, and no script runs; only the page's own style applies.
fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

fn write(document: &Value) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>codexec API</title><style>{STYLE}</style></head>\n<body><main>\
         <h1>codexec API</h1>\
         <p>Every route is below <code>{}</code> and needs a token: \
         <code>Authorization: Bearer TOKEN</code> or <code>X-API-Key: TOKEN</code>. \
         The same as <a href=\"/api/v1/openapi.json\">OpenAPI 3.1</a> (with a token).</p>\n",
        super::PREFIX
    );
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, methods) in paths.into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            write_operation(&mut html, (method, path), operation);
        }
    }
    html.push_str("<h2>Shapes</h2>\n");
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    for (name, schema) in schemas.into_iter().flatten() {
        let text = serde_json::to_string_pretty(schema).unwrap_or_default();
        html.push_str(&format!(
            "<details id=\"{name}\"><summary>{name}</summary><pre>{}</pre></details>\n",
            escape(&text),
            name = escape(name),
        ));
    }
    html.push_str("</main></body></html>\n");
    html
}

fn write_operation(html: &mut String, (method, path): (&str, &str), operation: &Value) {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).map(escape);
    html.push_str(&format!(
        "<section><h2><b>{}</b> <code>{}</code></h2><p>{} {}</p>",
        escape(&method.to_ascii_uppercase()),
        escape(path),
        text("summary").unwrap_or_default(),
        text("description").unwrap_or_default(),
    ));
    let parameters = operation.get("parameters").and_then(Value::as_array);
    for one in parameters.into_iter().flatten() {
        let part =
            |name: &str| one.get(name).and_then(Value::as_str).map_or_else(String::new, escape);
        let (name, place, about) = (part("name"), part("in"), part("description"));
        html.push_str(&format!("<p class=\"field\"><code>{name}</code> ({place}) {about}</p>"));
    }
    let properties = operation.pointer("/requestBody/content/application~1json/schema/properties");
    for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
        let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let (name, about) = (escape(name), escape(about));
        html.push_str(&format!("<p class=\"field\"><code>{name}</code> (body) {about}</p>"));
    }
    let responses = operation.get("responses").and_then(Value::as_object);
    let statuses: Vec<String> =
        responses.into_iter().flatten().map(|(status, _)| escape(status)).collect();
    html.push_str(&format!("<p class=\"field\">Answers: {}</p></section>\n", statuses.join(", ")));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
