//! Formats servers of other programs as tables of `config.toml`.

use codexec_mcp_config::{
    DiscoveredServer, OAuthConfig, RemoteConfig, RemoteKind, SecretSource, ServerOptions,
    StdioConfig, TransportConfig,
};
use toml::{Table, Value};

/// Prefixes with which `config.toml` refers to a value that is stored elsewhere.
const REFERENCE_PREFIXES: [&str; 3] = ["env:", "file:", "keyring:"];

/// Returns the table, and notes about values that are left out.
pub fn server_table(found: &DiscoveredServer) -> (Table, Vec<String>) {
    let mut table = Table::new();
    let mut notes = Vec::new();
    match &found.config.transport {
        TransportConfig::Stdio(program) => add_stdio(program, &mut table, &mut notes),
        TransportConfig::Remote(remote) => add_remote(remote, &mut table, &mut notes),
    }
    add_narrowing(&found.config.narrow, &mut table);
    if found.off.is_some() {
        table.insert("enabled".to_owned(), Value::Boolean(false));
    }
    (table, notes)
}

fn add_stdio(program: &StdioConfig, table: &mut Table, notes: &mut Vec<String>) {
    table.insert("command".to_owned(), Value::from(program.command.as_str()));
    if !program.args.is_empty() {
        table.insert("args".to_owned(), texts(&program.args));
    }
    add_pairs("env", &program.env, table, notes);
    if let Some(cwd) = &program.cwd {
        table.insert("cwd".to_owned(), Value::from(cwd.to_string_lossy().as_ref()));
    }
}

fn add_remote(remote: &RemoteConfig, table: &mut Table, notes: &mut Vec<String>) {
    // Undo the URL encoding of `${NAME}`, so that it stays a reference.
    let url = remote.url.as_str().replace("$%7B", "${").replace("%7D", "}");
    table.insert("url".to_owned(), Value::from(url));
    if remote.kind == RemoteKind::Sse {
        table.insert("type".to_owned(), Value::from("sse"));
    }
    add_pairs("headers", &remote.headers, table, notes);
    let OAuthConfig { client_id, client_secret, callback_port, scopes } = &remote.oauth;
    let mut oauth = Table::new();
    if let Some(id) = client_id {
        oauth.insert("client-id".to_owned(), Value::from(id.as_str()));
    }
    if let Some(secret) = client_secret {
        add_secret("client-secret", secret, &mut oauth, notes);
    }
    if let Some(port) = callback_port {
        oauth.insert("callback-port".to_owned(), Value::Integer((*port).into()));
    }
    if !scopes.is_empty() {
        oauth.insert("scopes".to_owned(), texts(scopes));
    }
    if !oauth.is_empty() {
        table.insert("oauth".to_owned(), Value::Table(oauth));
    }
}

fn add_narrowing(narrow: &ServerOptions, table: &mut Table) {
    if let Some(tools) = &narrow.enabled_tools {
        table.insert("enabled-tools".to_owned(), texts(tools));
    }
    if !narrow.disabled_tools.is_empty() {
        table.insert("disabled-tools".to_owned(), texts(&narrow.disabled_tools));
    }
    let timeouts =
        [("startup-timeout-ms", narrow.startup_timeout), ("timeout-ms", narrow.call_timeout)];
    for (key, time) in timeouts {
        if let Some(ms) = time.and_then(|time| i64::try_from(time.as_millis()).ok()) {
            table.insert(key.to_owned(), Value::Integer(ms.max(1)));
        }
    }
    if let Some(calls) = narrow.calls_at_once.and_then(|calls| i64::try_from(calls).ok()) {
        table.insert("max-concurrency".to_owned(), Value::Integer(calls));
    }
    if let Some(trust) = narrow.trust {
        table.insert("trust".to_owned(), Value::from(trust.name()));
    }
}

fn add_pairs(
    key: &str,
    pairs: &[(String, SecretSource)],
    table: &mut Table,
    notes: &mut Vec<String>,
) {
    let mut inner = Table::new();
    for (name, secret) in pairs {
        add_secret(name, secret, &mut inner, notes);
    }
    if !inner.is_empty() {
        table.insert(key.to_owned(), Value::Table(inner));
    }
}

fn add_secret(name: &str, secret: &SecretSource, table: &mut Table, notes: &mut Vec<String>) {
    let text = match secret {
        SecretSource::Plain(text) => text.clone(),
        SecretSource::Variable(variable) => format!("${{{variable}}}"),
        SecretSource::File(path) => format!("file:{}", path.display()),
        SecretSource::Keyring(entry) => format!("keyring:{entry}"),
    };
    let is_plain = matches!(secret, SecretSource::Plain(_));
    if is_plain && REFERENCE_PREFIXES.iter().any(|start| text.starts_with(start)) {
        notes.push(format!(
            "{name} is left out: in config.toml, env:, file: and keyring: refer to a value \
             elsewhere; put the value into a variable and write env:NAME"
        ));
        return;
    }
    table.insert(name.to_owned(), Value::String(text));
}

fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect())
}
