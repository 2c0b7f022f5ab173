//! `codexec conformance-client URL`: the client under test for the MCP conformance suite.
//! Uses the normal gateway as an agent and its user would: lists and calls tools, logs in when
//! required, and gives up after a few logins.

mod browser;
mod elicitation;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codexec_gateway::{Gateway, GatewaySettings, ServerState, login};
use codexec_mcp_config::{
    OAuthConfig, RemoteConfig, RemoteKind, SecretSource, ServerConfig, TransportConfig,
};
use codexec_types::{Ask, CallCode, CallError, Json, Language, ServerName, ToolFilter};
use codexec_typings::TypingsLanguage;
use serde_json::{Map, Value, json};

use crate::env;

/// The most logins while the server keeps asking for more scopes.
const MAX_LOGINS: usize = 3;

pub(super) async fn run(url: &str) -> anyhow::Result<ExitCode> {
    let context: Value = env::conformance_context()
        .map_or(Ok(Value::Null), |text| serde_json::from_str(&text))
        .context("MCP_CONFORMANCE_CONTEXT")?;
    let home = env::home().context("CODEXEC_HOME is not set")?;
    let server = server_config(url, &context)?;
    let settings = GatewaySettings {
        variable: env::variable,
        home: Some(home),
        ..GatewaySettings::new(Vec::new(), codexec_gateway::Warden::none())
    };
    let mut client = ConformanceClient { server, settings, logins: 0 };
    let gateway = client.connect().await?;
    let done = client.call_all(&gateway, &context).await;
    gateway.shutdown().await;
    done.map(|()| ExitCode::SUCCESS)
}

fn server_config(url: &str, context: &Value) -> anyhow::Result<ServerConfig> {
    let text = |key: &str| context.get(key).and_then(Value::as_str).map(str::to_owned);
    // The only client metadata document that the suite's authorization servers accept.
    let document = "https://conformance-test.local/client-metadata.json".to_owned();
    let oauth = OAuthConfig {
        client_id: text("client_id").or(Some(document)),
        client_secret: text("client_secret").map(SecretSource::Plain),
        ..OAuthConfig::default()
    };
    let url = url.parse().context("the URL")?;
    let remote = RemoteConfig { kind: RemoteKind::Http, url, headers: Vec::new(), oauth };
    Ok(ServerConfig {
        // The suite runs several clients at the same time.
        name: ServerName::new(&format!("conformance-{}", std::process::id()))?,
        transport: TransportConfig::Remote(remote),
        source: PathBuf::new(),
        narrow: codexec_mcp_config::ServerOptions::default(),
    })
}

struct ConformanceClient {
    server: ServerConfig,
    settings: GatewaySettings,
    logins: usize,
}

impl ConformanceClient {
    /// Connects, and logs in if the server requires it.
    async fn connect(&mut self) -> anyhow::Result<Gateway> {
        loop {
            let gateway = Gateway::new(vec![self.server.clone()], self.settings.clone());
            let gateway = gateway.on_behalf_of(elicitation::accepting_caller());
            gateway.list(&ToolFilter::all()).await;
            let health = gateway.health().pop().context("one server")?;
            if health.state == ServerState::Ready {
                return Ok(gateway);
            }
            let why = health.error.unwrap_or_default();
            self.log_in(&why).await?;
        }
    }

    async fn log_in(&mut self, why: &str) -> anyhow::Result<()> {
        if !why.contains("codexec servers login") || self.logins == MAX_LOGINS {
            bail!("{why}");
        }
        self.logins += 1;
        let open = |address: &_| browser::open(address);
        login(&self.server, &self.settings, open).await.context("no login")?;
        Ok(())
    }

    async fn call_all(&mut self, gateway: &Gateway, context: &Value) -> anyhow::Result<()> {
        for (tool, args) in planned_calls(gateway, context).await {
            loop {
                match call_tool(gateway, &self.server.name, &tool, &args).await {
                    Ok(_) => break,
                    // A tool may fail; only errors that a login can fix are retried.
                    Err(error) if !error.message.contains("codexec servers login") => break,
                    Err(error) => self.log_in(&error.message).await?,
                }
            }
        }
        Ok(())
    }
}

/// Returns the calls that the scenario names, or one call of every tool.
async fn planned_calls(gateway: &Gateway, context: &Value) -> Vec<(String, Map<String, Value>)> {
    if let Some(calls) = context.get("toolCalls").and_then(Value::as_array) {
        let read = |call: &Value| {
            let args = call.get("arguments").and_then(Value::as_object).cloned();
            Some((call.get("name")?.as_str()?.to_owned(), args.unwrap_or_default()))
        };
        return calls.iter().filter_map(read).collect();
    }
    let mut calls = Vec::new();
    for tool in gateway.list(&ToolFilter::all()).await {
        let schema =
            gateway.schema(&tool.name, &ToolFilter::all(), TypingsLanguage::TypeScript).await;
        let schema = schema.ok().and_then(|tool| tool.input_schema).unwrap_or_default();
        calls.push((tool.tool, minimal_arguments(&schema)));
    }
    calls
}

/// Returns minimal arguments that satisfy a schema.
fn minimal_arguments(schema: &Value) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut args = Map::new();
    for name in required.filter_map(Value::as_str) {
        let kind = schema.pointer(&format!("/properties/{name}/type")).and_then(Value::as_str);
        let value = match kind {
            Some("number" | "integer") => json!(1),
            Some("boolean") => json!(true),
            Some("object") => json!({}),
            Some("array") => json!([]),
            Some(_) | None => json!("test"),
        };
        args.insert(name.to_owned(), value);
    }
    args
}

async fn call_tool(
    gateway: &Gateway,
    server: &ServerName,
    tool: &str,
    args: &Map<String, Value>,
) -> Result<Json, CallError> {
    let ask = |args: &Map<String, Value>| Ask::Tool {
        server: server.to_string(),
        tool: tool.to_owned(),
        args: Json::from_value(&Value::Object(args.clone())),
    };
    match gateway.answer(ask(args), &ToolFilter::all(), Language::TypeScript).await {
        // A null value does not match the type, so the retry leaves it out.
        Err(error) if error.code == CallCode::InvalidArgs => {
            let mut args = args.clone();
            args.retain(|_, value| !value.is_null());
            gateway.answer(ask(&args), &ToolFilter::all(), Language::TypeScript).await
        }
        answered => answered,
    }
}
