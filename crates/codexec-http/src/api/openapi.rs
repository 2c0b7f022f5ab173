//! The OpenAPI document, made from the table of routes.

use codexec_functions::{Argument, ArgumentNeed};
use serde_json::{Map, Value, json};

use super::PREFIX;
use super::route::{Input, JSON, Need, Route};
use super::routes::ROUTES;

/// The shapes of answers. The shapes of requests come from the table.
const SCHEMAS: &str = include_str!("schemas.json");

/// Returns the document.
pub(super) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = route.path.replace("{+", "{");
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(route.verb.name().to_ascii_lowercase(), operation(route));
        }
    }
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let (error, mcpproxy) = (reference("Error"), reference("McpproxyResult"));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "codexec",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs code in sandboxes, with the user's MCP servers callable from it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": PREFIX}],
        "security": [{"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "responses": {
                "Error": {
                    "description": "The request failed; `message` says why.",
                    "content": {JSON: {"schema": error}},
                },
                "McpproxyError": {
                    "description": "The request failed, before or after it reached the route.",
                    "content": {JSON: {"schema": {"anyOf": [error, mcpproxy]}}},
                },
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    })
}

fn schemas() -> Value {
    serde_json::from_str(SCHEMAS).unwrap_or_default()
}

fn operation(route: &Route) -> Value {
    let scope = match route.need {
        Need::Read => "A token with any scope.",
        Need::Write => "A token that may write.",
        Need::ReadEveryone => "A token with the scope `everyone`.",
        Need::WriteEveryone => "A token with the scope `everyone` that may write.",
    };
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": scope,
        "tags": [route.path.split('/').nth(1).unwrap_or_default()],
        "parameters": parameters(route),
        "responses": responses(route),
    });
    if let (Some(fields), false) = (operation.as_object_mut(), matches!(route.body, Input::None)) {
        let body = json!({
            "required": true,
            "content": {JSON: {"schema": object_schema(&route.body.arguments())}},
        });
        fields.insert("requestBody".to_owned(), body);
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let path = route.path_parameters().map(|name| {
        let schema = json!({"type": "string", "minLength": 1});
        json!({"name": name, "in": "path", "required": true, "schema": schema})
    });
    let query = route.query.arguments();
    let query = query.iter().map(|one| {
        json!({
            "name": one.name,
            "in": "query",
            "required": one.need == ArgumentNeed::Required,
            "description": one.description,
            "schema": one.value_schema(),
        })
    });
    path.chain(query).collect()
}

/// Returns the schema of an object with these fields. A field that agents are told to give, but
/// that may be left out, is optional.
fn object_schema(arguments: &[Argument]) -> Value {
    let property = |one: &Argument| {
        let mut schema = one.value_schema();
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("description".to_owned(), one.description.into());
        }
        (one.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = arguments.iter().map(property).collect();
    let required: Vec<&str> = arguments
        .iter()
        .filter(|one| one.need == ArgumentNeed::Required)
        .map(|one| one.name)
        .collect();
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if let (Some(fields), false) = (schema.as_object_mut(), required.is_empty()) {
        fields.insert("required".to_owned(), json!(required));
    }
    schema
}

fn responses(route: &Route) -> Value {
    let mut responses: Map<String, Value> = Map::new();
    for answer in route.answers {
        let entry = responses.entry(answer.status.to_string());
        let entry = entry.or_insert_with(|| json!({"description": "Done.", "content": {}}));
        let schema = match answer.schema {
            Some(name) => json!({"schema": {"$ref": format!("#/components/schemas/{name}")}}),
            None => json!({"schema": {"type": "string"}}),
        };
        if let Some(content) = entry.get_mut("content").and_then(Value::as_object_mut) {
            content.insert(answer.media_type.to_owned(), schema);
        }
    }
    let mut errors: Vec<u16> = vec![400, 401, 403, 429, 431, 503];
    if route.path.contains('{') {
        errors.push(404);
    }
    if !matches!(route.body, Input::None) {
        errors.extend([408, 413, 415]);
    }
    errors.extend(route.errors);
    errors.sort_unstable();
    errors.dedup();
    let shape = match route.body {
        Input::Raw(_) => "McpproxyError",
        Input::None | Input::Function(..) | Input::Fields(_) => "Error",
    };
    for status in errors {
        let error = json!({"$ref": format!("#/components/responses/{shape}")});
        responses.insert(status.to_string(), error);
    }
    Value::Object(responses)
}
