//! Servers of another system as tables of our own file.

use codexec_gateway::{
    Found, Narrow, OAuthConfig, RemoteConfig, RemoteKind, Secret, StdioConfig, TransportConfig,
};
use toml::{Table, Value};

/// What begins like this says in our file where a value is kept.
const KEPT_ELSEWHERE: [&str; 3] = ["env:", "file:", "keyring:"];

/// The table, and what could not be written.
pub(super) fn table(found: &Found) -> (Table, Vec<String>) {
    let mut table = Table::new();
    let mut notes = Vec::new();
    match &found.config.transport {
        TransportConfig::Stdio(program) => stdio(program, &mut table, &mut notes),
        TransportConfig::Remote(remote) => far(remote, &mut table, &mut notes),
    }
    narrowed(&found.config.narrow, &mut table);
    if found.off.is_some() {
        table.insert("enabled".to_owned(), Value::Boolean(false));
    }
    (table, notes)
}

fn stdio(program: &StdioConfig, table: &mut Table, notes: &mut Vec<String>) {
    table.insert("command".to_owned(), Value::from(program.command.as_str()));
    if !program.args.is_empty() {
        table.insert("args".to_owned(), texts(&program.args));
    }
    pairs("env", &program.env, table, notes);
    if let Some(cwd) = &program.cwd {
        table.insert("cwd".to_owned(), Value::from(cwd.to_string_lossy().as_ref()));
    }
}

fn far(remote: &RemoteConfig, table: &mut Table, notes: &mut Vec<String>) {
    // A reference stays one: `${NAME}` was only made harmless for the URL.
    let url = remote.url.as_str().replace("$%7B", "${").replace("%7D", "}");
    table.insert("url".to_owned(), Value::from(url));
    if remote.kind == RemoteKind::Sse {
        table.insert("type".to_owned(), Value::from("sse"));
    }
    pairs("headers", &remote.headers, table, notes);
    let OAuthConfig { client_id, client_secret, callback_port, scopes } = &remote.oauth;
    let mut oauth = Table::new();
    if let Some(id) = client_id {
        oauth.insert("client-id".to_owned(), Value::from(id.as_str()));
    }
    if let Some(secret) = client_secret {
        secret_at("client-secret", secret, &mut oauth, notes);
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

fn narrowed(narrow: &Narrow, table: &mut Table) {
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

fn pairs(key: &str, pairs: &[(String, Secret)], table: &mut Table, notes: &mut Vec<String>) {
    let mut inner = Table::new();
    for (name, secret) in pairs {
        secret_at(name, secret, &mut inner, notes);
    }
    if !inner.is_empty() {
        table.insert(key.to_owned(), Value::Table(inner));
    }
}

fn secret_at(name: &str, secret: &Secret, table: &mut Table, notes: &mut Vec<String>) {
    let text = match secret {
        Secret::Plain(text) => text.clone(),
        Secret::Variable(variable) => format!("${{{variable}}}"),
        Secret::File(path) => format!("file:{}", path.display()),
        Secret::Keyring(entry) => format!("keyring:{entry}"),
    };
    let is_plain = matches!(secret, Secret::Plain(_));
    if is_plain && KEPT_ELSEWHERE.iter().any(|start| text.starts_with(start)) {
        notes.push(format!(
            "{name} is left out: what begins with env:, file: or keyring: says here where a value \
             is kept; keep it in a variable and write env:NAME"
        ));
        return;
    }
    table.insert(name.to_owned(), Value::String(text));
}

fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect())
}
