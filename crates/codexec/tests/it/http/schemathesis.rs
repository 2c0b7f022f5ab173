//! schemathesis sends what the OpenAPI document allows, and what it does not, and compares every
//! answer with the document.

use std::process::Command;

use serde_json::json;

use super::server::Server;
use crate::support::{need, world};

/// For more than 2,000 requests, within a minute.
const EXAMPLES: &str = "30";

#[test]
fn no_answer_is_undocumented() {
    let Some(world) = world() else { return };
    let program = world.join("venv/bin/schemathesis");
    if !need("schemathesis", program.exists()) {
        return;
    }
    // No package is installed from anywhere.
    let settings = "[packages]\npython-index = \"http://127.0.0.1:9/\"\n\
                    npm-registry = \"http://127.0.0.1:9/\"\ntimeout-s = 10\n";
    let server = Server::start(settings, &json!({}));
    server.wait_until_ready();
    let output = Command::new(program)
        .arg("run")
        .arg(format!("http://{}/api/v1/openapi.json", server.authority))
        // Both, because it makes up the header that it is not given.
        .args(["-H", &format!("Authorization: Bearer {}", server.token)])
        .args(["-H", &format!("X-API-Key: {}", server.token)])
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method"])
        // A stream without an end.
        .args(["--exclude-operation-id", "watch_events"])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES])
        .args(["--seed", "7", "--workers", "1", "--request-timeout", "60", "--no-color"])
        .env("HOME", server.home.path())
        .current_dir(server.home.path())
        .output()
        .expect("schemathesis runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
