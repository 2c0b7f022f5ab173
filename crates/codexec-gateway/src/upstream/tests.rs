//! Tests against a real process that misbehaves on command: `tests/scripted.py`.

mod answers;
mod calls;
mod ends;
mod floods;
mod listing;
mod starts;

use std::{path::PathBuf, time::Duration};

use codexec_mcp_config::{SecretSource, ServerConfig, StdioConfig, TransportConfig};
use codexec_types::{Ask, CallCode, CallError, Json, Language, ServerName, ToolFilter};
use codexec_typings::TypingsLanguage;
use serde_json::{Value, json};

use crate::{
    Gateway, GatewaySettings, MissingReason, MissingServer, SearchQuery, SearchWait, ServerState,
    Warden,
};

fn settings() -> GatewaySettings {
    let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8")];
    let env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    GatewaySettings {
        startup_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(20),
        catalogue_wait: Duration::from_secs(10),
        ..GatewaySettings::new(env, Warden::none())
    }
}

#[track_caller]
fn server(name: &str, plan: &Value) -> ServerConfig {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripted.py");
    {
        let program = StdioConfig {
            command: "python3".to_owned(),
            args: vec!["-S".to_owned(), script.display().to_string(), plan.to_string()],
            ..StdioConfig::default()
        };
        ServerConfig::stdio(ServerName::new(name).expect("a name"), program, PathBuf::new())
    }
}

fn program(server: &mut ServerConfig) -> &mut StdioConfig {
    match &mut server.transport {
        TransportConfig::Stdio(program) => program,
        TransportConfig::Remote(remote) => panic!("{remote:?}"),
    }
}

fn gateway(plan: &Value) -> Gateway {
    Gateway::new(vec![server("s", plan)], settings())
}

async fn call(gateway: &Gateway, tool: &str, args: Value) -> Result<Value, CallError> {
    let ask =
        Ask::Tool { server: "s".to_owned(), tool: tool.to_owned(), args: Json::from_value(&args) };
    let answer = gateway.answer(ask, &ToolFilter::all(), Language::TypeScript).await?;
    Ok(answer.to_value().expect("JSON"))
}

/// Calls one tool and then another: the first must not affect the second.
async fn check(plan: Value, tool: &str, expected: Result<Value, &str>) {
    let gateway = gateway(&plan);
    let actual = call(&gateway, tool, json!({})).await.map_err(|err| err.message);
    assert_eq!(actual, expected.map_err(str::to_owned));
    assert_eq!(call(&gateway, "echo", json!({"n": 1})).await, Ok(json!({"n": 1})));
    gateway.shutdown().await;
}

fn with_tool(tool: &str) -> Value {
    json!({ "tools": ["echo", tool] })
}

fn rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("VmHWM");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") << 10
}
