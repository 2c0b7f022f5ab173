//! `/metrics` as others read it: Prometheus' own Python parser, and the Grafana dashboard.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::server::Server;
use crate::startup::upstream;
use crate::support::world;

/// Parses the text, and prints each family with its type and its numbers.
const PARSER: &str = "import json, sys\n\
    from prometheus_client.parser import text_string_to_metric_families as parse\n\
    families = parse(sys.stdin.read())\n\
    print(json.dumps({f.name: {'type': f.type, 'samples': [[s.name, s.labels, s.value] \
    for s in f.samples]} for f in families}))";

/// The names of the systems that codexec replaces, as their parser has them: without `_total`.
const SEED_NAMES: [(&str, &str); 9] = [
    ("circuit_breaker_state", "gauge"),
    ("circuit_breaker_failures", "counter"),
    ("pool_active_connections", "gauge"),
    ("pool_queue_depth", "gauge"),
    ("pool_queue_wait_seconds", "histogram"),
    ("cache_hits", "counter"),
    ("cache_misses", "counter"),
    ("http_requests", "counter"),
    ("http_request_duration_seconds", "histogram"),
];

const DASHBOARD: &str = include_str!("../../../../../docs/grafana/codexec.json");

struct Metrics(BTreeMap<String, Value>);

impl Metrics {
    fn read(server: &Server, token: &str, python: &std::path::Path) -> Metrics {
        let answer = server.ask("GET", "/metrics", &[("X-API-Key", token)], "");
        assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4"));
        let mut parser = Command::new(python)
            .args(["-c", PARSER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let stdin = parser.stdin.take();
        stdin.expect("piped").write_all(answer.body.as_bytes()).expect("written");
        let output = parser.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", answer.body);
        Metrics(serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// The value of a sample with these labels.
    fn value(&self, name: &str, labels: &Value) -> f64 {
        let found = self.samples().find(|sample| sample[0] == name && sample[1] == *labels);
        found.unwrap_or_else(|| panic!("no {name} {labels}"))[2].as_f64().expect("a number")
    }

    fn samples(&self) -> impl Iterator<Item = &Value> {
        self.0.values().flat_map(|family| family["samples"].as_array().expect("samples"))
    }

    fn label_values(&self, label: &str) -> BTreeSet<&str> {
        self.samples().filter_map(|sample| sample[1][label].as_str()).collect()
    }
}

#[test]
fn http_3_metrics_are_those_of_prometheus_and_of_the_tokens_own_servers() {
    let Some(world) = world() else { return };
    let python = world.join("venv/bin/python");
    let servers = json!({"mail": upstream(&["me"]), "calendar": {"command": "/nowhere"}});
    let server = Server::start("", &servers);
    server.wait_until_ready();
    let run = |language: &str, code: &str| {
        server.execute(&server.token, &json!({"language": language, "code": code}))
    };
    let called =
        run("typescript", "for (let i = 0; i < 3; i++) await tools.mail.who({}); return 1");
    assert_eq!(called["content"][0]["text"], "1", "{called}");
    run("bash", "exit 3");
    run("cobol", "DISPLAY 1");
    let metrics = Metrics::read(&server, &server.token, &python);
    for (name, kind) in SEED_NAMES {
        assert_eq!(metrics.0.get(name).map(|family| &family["type"]), Some(&json!(kind)), "{name}");
    }
    let count = |language: &str, outcome: &str| {
        let labels = json!({"language": language, "outcome": outcome});
        metrics.value("codexec_executions_total", &labels)
    };
    assert_eq!((count("typescript", "returned"), count("bash", "exited")), (1.0, 1.0));
    let bash = json!({"language": "bash"});
    assert_eq!(metrics.value("codexec_execution_duration_seconds_count", &bash), 1.0);
    let mail = json!({"server": "mail"});
    assert_eq!(metrics.value("codexec_tool_calls_total", &mail), 3.0);
    assert_eq!(metrics.value("codexec_tool_call_duration_seconds_count", &mail), 3.0);
    assert_eq!(metrics.value("circuit_breaker_state", &mail), 0.0);
    let tools = json!({"cache_type": "tools"});
    let lookups = ["cache_hits_total", "cache_misses_total"];
    let lookups: f64 = lookups.iter().map(|name| metrics.value(name, &tools)).sum();
    assert_eq!(lookups, 3.0);
    let none = json!({});
    assert!(metrics.value("codexec_workers_max", &none) >= 1.0);
    assert!(metrics.value("process_resident_memory_bytes", &none) > 1e6);
    assert!(metrics.value("codexec_workers_waiting", &json!({"pool": "javascript"})) >= 1.0);
    assert_eq!(metrics.label_values("server"), BTreeSet::from(["mail", "calendar"]));
    // Whatever clients send, labels are words of ours.
    let languages = BTreeSet::from(["bash", "javascript", "node", "python", "typescript"]);
    assert_eq!(metrics.label_values("language"), languages);
    let reader = server.make_token("reader", "read,server:mail");
    let seen = Metrics::read(&server, &reader, &python);
    assert_eq!(seen.label_values("server"), BTreeSet::from(["mail"]));
}

#[test]
fn the_dashboard_queries_only_metrics_that_exist() {
    let server = Server::start("", &json!({"mail": upstream(&["me"])}));
    let key = [("X-API-Key", server.token.as_str())];
    let metrics = server.ask("GET", "/metrics", &key, "").body;
    let families: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let queries: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
        .map(|target| target["expr"].as_str().expect("a query"))
        .collect();
    assert!(queries.len() >= 20, "{queries:?}");
    let mut queried = BTreeSet::new();
    for query in queries {
        // Every selector names the instance, so a name ends before one.
        let names = query.split("{instance=").filter_map(|before| {
            let start = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            before.get(start.map_or(0, |at| at + 1)..).filter(|name| !name.is_empty())
        });
        for name in names {
            let family = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(families.contains(family), "{name} in {query}");
            queried.insert(family);
        }
    }
    let unseen: Vec<&&str> = families.iter().filter(|name| !queried.contains(**name)).collect();
    assert!(unseen.is_empty(), "no panel shows {unseen:?}");
}
