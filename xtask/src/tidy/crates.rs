//! Checks the dependencies of each crate against the tables below.

use serde_json::Value;

/// Which crate may depend on which. Change this table and ARCHITECTURE.md together.
const ALLOWED: &[(&str, &[&str])] = &[
    ("codexec-types", &[]),
    ("codexec-sandbox", &["codexec-types"]),
    ("codexec-js", &["codexec-types"]),
    ("codexec-schema", &[]),
    ("codexec-gateway", &["codexec-types", "codexec-schema"]),
    ("codexec-store", &["codexec-types"]),
    ("codexec-scripts", &["codexec-types", "codexec-schema"]),
    ("codexec-exec", &["codexec-types", "codexec-sandbox"]),
    (
        "codexec-server",
        &["codexec-types", "codexec-exec", "codexec-gateway", "codexec-store", "codexec-scripts"],
    ),
    (
        "codexec",
        &[
            "codexec-types",
            "codexec-sandbox",
            "codexec-js",
            "codexec-exec",
            "codexec-gateway",
            "codexec-store",
            "codexec-scripts",
            "codexec-server",
        ],
    ),
    ("xtask", &[]),
];

/// Third-party crates that only some of our crates may use; a trailing `*` matches any suffix.
/// Change this table and deny.toml together.
const RESTRICTED: &[(&str, &[&str])] = &[
    ("rmcp", &["codexec-gateway", "codexec-server"]),
    ("rquickjs*", &["codexec-js"]),
    ("oxc*", &["codexec-js"]),
    ("rusqlite", &["codexec-store"]),
    ("landlock", &["codexec-sandbox"]),
    ("seccompiler", &["codexec-sandbox"]),
    // The gateway kills process groups of its servers; the server opens stored files with openat.
    (
        "nix",
        &[
            "codexec-sandbox",
            "codexec-gateway",
            "codexec-js",
            "codexec-scripts",
            "codexec-server",
            "codexec-store",
        ],
    ),
    ("axum", &["codexec-server"]),
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
    let name = word(package, "name");
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
        let used = word(dependency, "name");
        if name == BINARY && word(dependency, "kind") == "dev" {
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

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
