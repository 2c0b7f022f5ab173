//! The REST API, `/api/v1`. One table (`routes.rs`) says which routes there are; dispatch, the
//! needed scopes and the OpenAPI document are made from it.

mod about;
mod approvals;
mod artifacts;
mod error;
mod events;
mod execution_view;
mod executions;
mod logs;
mod openapi;
mod packages;
mod page;
mod percent;
mod query;
mod route;
mod routes;
mod scripts;
mod seed_routes;
mod servers;
mod sessions;
mod sse;
mod tokens;
mod tools;

use std::sync::Arc;

use bytes::Bytes;
use codexec_functions::OwnFunction;
use codexec_server::mcp::HttpBody;
use codexec_server::{App, Client, Connection};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub(crate) use self::error::ApiError;
pub(crate) use self::page::page;
use self::route::{Input, Need, Route};
use self::routes::ROUTES;
use crate::callers::TokenHolder;
use crate::edge::HttpEdge;
use crate::error::{HttpError, json_response};
use crate::trace;

/// The path of all routes.
pub(crate) const PREFIX: &str = "/api/v1";

/// A rough average over tokenizers, enough to show the order of magnitude.
const CHARACTERS_PER_TOKEN: usize = 4;

type Answer = Result<Response<HttpBody>, ApiError>;

/// A request to a route, with its scopes checked and its parts parsed.
pub(crate) struct ApiRequest<'a> {
    pub(crate) edge: &'a HttpEdge,
    pub(crate) head: &'a Parts,
    connection: Arc<Connection>,
    /// Ends the streams of the caller.
    stop: CancellationToken,
    /// The values of the path's parameters, in order.
    path: Vec<String>,
    query: Map<String, Value>,
    /// The body as it came.
    raw: Bytes,
    body: Map<String, Value>,
}

impl ApiRequest<'_> {
    fn app(&self) -> &Arc<App> {
        &self.edge.parts.app
    }

    fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    fn client(&self) -> Client {
        trace::client(&self.connection, self.head)
    }

    /// Returns a parameter of the path.
    fn path(&self, index: usize) -> &str {
        self.path.get(index).map_or("", String::as_str)
    }
}

/// Returns the name of the route for metrics.
pub(crate) fn label(method: &Method, path: &str) -> &'static str {
    let found = route::find(ROUTES, method, path).ok();
    found.map_or("api", |(route, _)| route.id)
}

impl HttpEdge {
    /// Answers a request to a path below `/api/v1`.
    pub(crate) async fn answer_api(
        &self,
        head: &Parts,
        body: Incoming,
        caller: &TokenHolder,
        path: &str,
    ) -> Answer {
        let (route, path) = route::find(ROUTES, &head.method, path)?;
        let connection = self.authorize(route, caller)?;
        let query = query::parse(head.uri.query(), &route.query.arguments())?;
        let raw = match route.body {
            Input::None => Bytes::new(),
            Input::Function(..) | Input::Fields(_) | Input::Raw(_) => {
                self.read_json(head, body).await?
            }
        };
        let body = match route.body {
            Input::None | Input::Raw(_) => Map::new(),
            Input::Function(..) | Input::Fields(_) => read_object(&raw)?,
        };
        let stop = caller.stop().child_token();
        let request = ApiRequest { edge: self, head, connection, stop, path, query, raw, body };
        (route.handler)(request).await
    }

    /// THREAT[HTTP-10]: the scope that a route needs is checked before anything of it is read.
    fn authorize(&self, route: &Route, caller: &TokenHolder) -> Result<Arc<Connection>, ApiError> {
        let connection = Arc::clone(&caller.endpoint(Some(route.toolset), &self.parts)?.connection);
        let (writes, is_for_all) = match route.need {
            Need::Read => (false, false),
            Need::Write => (true, false),
            Need::ReadEveryone => (false, true),
            Need::WriteEveryone => (true, true),
        };
        if is_for_all && !connection.sees_settings() {
            return Err(HttpError::Scope("everyone".to_owned()).into());
        }
        if writes && connection.is_read_only() {
            return Err(HttpError::Scope("write".to_owned()).into());
        }
        Ok(connection)
    }
}

/// Returns the value of the only parameter that a query may have, if it has one; `None` if the query
/// is malformed.
pub(crate) fn query_value(head: &Parts, name: &str) -> Option<Option<String>> {
    let mut values = query::parse(head.uri.query(), &[]).ok()?;
    let value = values.shift_remove(name);
    let text = value.and_then(|value| value.as_str().map(str::to_owned));
    values.is_empty().then_some(text)
}

fn read_object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(ApiError::invalid("the body must be a JSON object")),
        Err(_) => Err(HttpError::Json.into()),
    }
}

/// Calls an own function, and returns the fields of its result.
async fn call_function(
    request: &ApiRequest<'_>,
    function: OwnFunction,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    let client = request.client();
    // A client that disconnects cancels by token and never by drop.
    let guard = client.cancel.clone().drop_guard();
    let app = Arc::clone(request.app());
    let called =
        tokio::spawn(async move { app.call_own_function(function, arguments, &client).await });
    let called = called.await.map_err(|_| ApiError::internal());
    drop(guard.disarm());
    let mut fields = match called??.value {
        Value::Object(fields) => fields,
        other => Map::from_iter([("value".to_owned(), other)]),
    };
    // The status says it.
    fields.shift_remove("success");
    Ok(fields)
}

fn ok(body: &Value) -> Answer {
    Ok(json_response(StatusCode::OK, body))
}

#[cfg(test)]
mod tests;
