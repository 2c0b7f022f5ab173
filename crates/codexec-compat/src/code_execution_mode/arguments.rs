use std::time::Duration;

use codexec_server::{App, Client, ExecutionRequest, FieldError, Fields, RequestWords};
use codexec_types::{
    Language, RequestedLimits, ServerName, ToolView, find_nearest_names, to_identifier,
};
use serde_json::{Map, Value};

use super::settings::BridgeSettings;

/// More servers than anybody has.
const MAX_SERVERS: usize = 1_000;
/// Maximum number of servers that an error lists.
const MAX_LISTED: usize = 20;

/// The checked arguments of `run_python`.
pub(super) struct RunPythonArguments {
    code: String,
    /// The servers' own names, even if an alias was given.
    pub(super) servers: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) max_timeout: Duration,
}

impl RunPythonArguments {
    pub(super) fn read(
        arguments: Map<String, Value>,
        app: &App,
        settings: &BridgeSettings,
        client: &Client,
    ) -> Result<RunPythonArguments, String> {
        let mut fields = Fields::new(arguments);
        let most = settings.max_timeout.min(client.connection.policy().max_wall);
        let most = most.as_secs().max(1);
        let read = (|| {
            let code = fields.required_text("code")?;
            let servers = fields.texts("servers")?.unwrap_or_default();
            let seconds = fields.number("timeout", 1..=most)?;
            fields.finish()?;
            Ok((code, servers, seconds))
        })();
        let (code, servers, seconds) = read.map_err(|error: FieldError| error.to_string())?;
        let servers = resolve_servers(servers, &app.gateway.server_names())?;
        let max_timeout = Duration::from_secs(most);
        let timeout = seconds.map_or(settings.timeout, Duration::from_secs);
        Ok(RunPythonArguments { code, servers, timeout: timeout.min(max_timeout), max_timeout })
    }

    /// The code may call the named servers, and see all servers.
    pub(super) fn to_request(&self) -> ExecutionRequest {
        let mut request = ExecutionRequest::new(Language::Python, self.code.clone());
        let allowed_servers = Some(self.servers.clone());
        request.asked = RequestedLimits {
            wall: Some(self.timeout),
            allowed_servers,
            ..RequestedLimits::default()
        };
        request.view = ToolView::WholePolicy;
        request.words = RequestWords {
            servers: "servers",
            has_own_functions: false,
            directory: None,
            ..RequestWords::default()
        };
        request
    }
}

fn resolve_servers(asked: Vec<String>, known: &[ServerName]) -> Result<Vec<String>, String> {
    let count = asked.len();
    if count > MAX_SERVERS {
        return Err(format!("servers: there are {count}; at most {MAX_SERVERS} are allowed"));
    }
    let mut found: Vec<String> = Vec::new();
    for name in asked {
        let real = resolve_server(&name, known)?;
        if !found.contains(&real) {
            found.push(real);
        }
    }
    Ok(found)
}

fn resolve_server(name: &str, known: &[ServerName]) -> Result<String, String> {
    // codexec's own functions are tools of a server with this name.
    if name == "codexec" || known.iter().any(|server| server.as_str() == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = known.iter().map(ServerName::as_str).collect();
    let goes_by = |server: &&str| {
        let alias = to_identifier(server);
        alias == name || alias.to_lowercase() == name
    };
    let same: Vec<&str> = names.iter().copied().filter(goes_by).collect();
    let near = find_nearest_names(name, names.iter().copied(), 3);
    let shown: String = name.chars().take(80).collect();
    match (same.as_slice(), near.as_slice()) {
        ([server], _) => Ok((*server).to_owned()),
        ([], []) if names.is_empty() => {
            Err(format!("servers: there is no server {shown:?}; none is configured"))
        }
        ([], []) => {
            let some = names.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(", ");
            Err(format!("servers: there is no server {shown:?}; there are {some}"))
        }
        ([], near) => {
            let near = near.join(", ");
            Err(format!("servers: there is no server {shown:?}; did you mean {near}?"))
        }
        (several, _) => {
            let several = several.join(", ");
            Err(format!("servers: {shown:?} is ambiguous: {several}; write one of these"))
        }
    }
}
