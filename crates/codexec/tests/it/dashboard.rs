//! The dashboard in Debian's Chromium, as a person uses it. The scenarios are beside this file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::attacks::recorder::Recorders;
use crate::http::server::Server;
use crate::support::{PATIENCE, need, world};

const BROWSER: &str = include_str!("dashboard/browser.mjs");
const CHROMIUM: &str = "/usr/bin/chromium";

/// Runs a scenario against a server.
#[track_caller]
fn check(server: &Server, scenario: (&str, &str), more: &Value) {
    let Some(world) = world() else { return };
    let what = "Chromium (on Debian: apt-get install chromium)";
    if !need(what, Path::new(CHROMIUM).exists()) {
        return;
    }
    let modules = world.join("npm/node_modules");
    let folder = tempfile::tempdir().expect("a directory");
    let (name, text) = scenario;
    fs::write(folder.path().join("browser.mjs"), BROWSER).expect("written");
    fs::write(folder.path().join(name), text).expect("written");
    let mut plan = json!({
        "scenario": format!("./{name}"),
        "url": format!("http://{}", server.authority),
        "token": server.token,
        "modules": modules,
        "chromium": CHROMIUM,
        "patience_ms": PATIENCE.as_millis(),
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        plan[name] = value.clone();
    }
    let output = Command::new(modules.join(".bin/node"))
        .arg(folder.path().join("browser.mjs"))
        .arg(plan.to_string())
        .env("HOME", folder.path())
        .output()
        .expect("node runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

fn time_server() -> Value {
    let command = world().map(|world| world.join("venv/bin/mcp-server-time"));
    json!({"time": {"command": command, "args": ["--local-timezone", "UTC"]}})
}

/// A server whose Python is the world's virtual environment.
fn with_figures(servers: &Value) -> Server {
    let venv = world().unwrap_or_default().join("venv");
    let server = Server::start(&format!("[python]\nvenv = {venv:?}\n"), servers);
    server.wait_until_ready();
    server
}

macro_rules! scenario {
    ($name:literal) => {
        ($name, include_str!(concat!("dashboard/", $name)))
    };
}

#[test]
fn a_person_signs_in_runs_code_and_cancels_it() {
    let server = Server::start("", &json!({}));
    server.wait_until_ready();
    check(&server, scenario!("running.mjs"), &json!({}));
}

#[test]
fn everything_works_by_keyboard() {
    let server = with_figures(&time_server());
    check(&server, scenario!("keyboard.mjs"), &json!({}));
}

#[test]
fn a_past_execution_is_found_and_shown_with_its_figure() {
    let server = with_figures(&time_server());
    check(&server, scenario!("past.mjs"), &json!({}));
}

#[test]
fn web_2_hostile_output_is_shown_as_text() {
    let server = Server::start("[limits]\noutput-kib = 20480\n", &json!({}));
    server.wait_until_ready();
    check(&server, scenario!("hostile.mjs"), &json!({}));
}

#[test]
fn a_server_goes_down_and_up_before_the_eyes_of_the_user() {
    let server = Server::start("", &json!({"everything": everything()}));
    server.wait_until_ready();
    check(&server, scenario!("servers.mjs"), &json!({}));
}

fn everything() -> Value {
    let bin = world().unwrap_or_default().join("npm/node_modules/.bin");
    json!({"command": bin.join("node"), "args": [bin.join("mcp-server-everything")]})
}

/// A server with one tool, whose definition changes when the scenario writes the plan.
fn hub(folder: &Path, tool: &str) -> (Value, PathBuf) {
    let schema = json!({"type": "object"});
    let tool = json!({"name": tool, "description": "Sends a mail.", "inputSchema": schema});
    let entry = Recorders::new(folder).entry("hub", &json!({"tools": [tool]}));
    (entry, folder.join("hub.plan"))
}

#[test]
fn a_changed_tool_definition_is_approved() {
    let folder = tempfile::tempdir().expect("a directory");
    let (entry, plan) = hub(folder.path(), "get");
    let server = Server::start("", &json!({"hub": entry}));
    server.wait_until_ready();
    check(&server, scenario!("approvals.mjs"), &json!({"hub_plan": plan}));
}

#[test]
fn every_page_fits_and_is_accessible() {
    // Set to a folder, this makes the pictures of the guide.
    let screenshots = std::env::var_os("CODEXEC_SCREENSHOTS").map(PathBuf::from);
    let folder = tempfile::tempdir().expect("a directory");
    let (entry, plan) = hub(folder.path(), "send");
    let mut servers = time_server();
    servers["everything"] = everything();
    servers["hub"] = entry;
    let server = with_figures(&servers);
    let more = json!({"hub_plan": plan, "screenshots": screenshots});
    check(&server, scenario!("pages.mjs"), &more);
}

#[test]
fn web_3_the_token_stays_in_the_tab_and_other_code_stays_out() {
    let server = Server::start("", &json!({}));
    check(&server, scenario!("token.mjs"), &json!({}));
}

#[test]
fn web_1_the_page_needs_no_token_and_its_policy_is_strict() {
    let server = Server::start("", &json!({}));
    for path in ["/", "/assets/main.js", "/assets/style.css"] {
        let answer = server.ask("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        let tag = answer.header("etag").expect("a tag").to_owned();
        assert_eq!(server.ask("GET", path, &[("If-None-Match", &tag)], "").status, 304, "{path}");
    }
    assert_eq!(server.ask("GET", "/assets/other.js", &[], "").status, 401);
    assert_eq!(server.ask("GET", "/", &[("Host", "evil.example")], "").status, 403);
    let framed = [("Sec-Fetch-Site", "cross-site")];
    assert_eq!(server.ask("GET", "/", &framed, "").status, 403);
}
