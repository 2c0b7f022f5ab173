//! Tests against a real local server that misbehaves on command: `tests/scripted_http.py`.

mod bad_answers;
mod connections;
mod logins;

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use codexec_mcp_config::{
    OAuthConfig, RemoteConfig, RemoteKind, ServerConfig, ServerOptions, TransportConfig,
};
use codexec_types::{Ask, CallError, Json, Language, ServerName, ToolFilter};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Gateway, GatewaySettings, Warden};

/// A scripted server, killed with the test.
struct ScriptedHttpServer {
    child: Child,
    port: u16,
}

impl ScriptedHttpServer {
    fn start(plan: &Value) -> ScriptedHttpServer {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripted_http.py");
        #[expect(clippy::disallowed_methods, reason = "a server that is not ours to start")]
        let mut command = Command::new("python3");
        command.arg("-S").arg(script).arg(plan.to_string());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        ScriptedHttpServer { child, port: line.trim().parse().expect("a port") }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Returns the requests it received so far.
    async fn log(&self) -> Vec<Value> {
        let url = format!("http://127.0.0.1:{}/log", self.port);
        let client = crate::web::build_client(&settings(None)).expect("a client");
        let body = client.get(url).send().await.expect("an answer").text().await.expect("a body");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Returns how often `path` was requested.
    async fn times(&self, path: &str) -> usize {
        self.log().await.iter().filter(|entry| entry["path"] == path).count()
    }
}

impl Drop for ScriptedHttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn settings(home: Option<&TempDir>) -> GatewaySettings {
    GatewaySettings {
        startup_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(20),
        catalogue_wait: Duration::from_secs(10),
        home: home.map(|home| home.path().to_owned()),
        ..GatewaySettings::new(Vec::new(), Warden::none())
    }
}

fn remote(url: &str) -> RemoteConfig {
    RemoteConfig {
        kind: RemoteKind::Http,
        url: url.parse().expect("a URL"),
        headers: Vec::new(),
        oauth: OAuthConfig::default(),
    }
}

fn config(remote: RemoteConfig) -> ServerConfig {
    ServerConfig {
        name: ServerName::new("s").expect("a name"),
        transport: TransportConfig::Remote(remote),
        source: PathBuf::new(),
        narrow: ServerOptions::default(),
    }
}

fn gateway(remote: RemoteConfig) -> Gateway {
    Gateway::new(vec![config(remote)], settings(None))
}

async fn call(gateway: &Gateway, tool: &str) -> Result<Value, String> {
    call_with(gateway, tool, json!({})).await.map_err(|error| error.message)
}

async fn call_with(gateway: &Gateway, tool: &str, args: Value) -> Result<Value, CallError> {
    let ask =
        Ask::Tool { server: "s".to_owned(), tool: tool.to_owned(), args: Json::from_value(&args) };
    let answer = gateway.answer(ask, &ToolFilter::all(), Language::JavaScript).await?;
    Ok(answer.to_value().expect("JSON"))
}
