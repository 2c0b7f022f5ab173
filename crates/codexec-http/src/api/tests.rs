use std::collections::BTreeSet;
use std::path::Path;

use super::*;

/// `CODEXEC_UPDATE=1` writes the file anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "a variable for those who run the tests")]
fn the_document_is_checked_in() {
    let file = "docs/reference/openapi.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let made = serde_json::to_string_pretty(&openapi::document()).expect("JSON") + "\n";
    if std::fs::read_to_string(&path).unwrap_or_default() == made {
        return;
    }
    assert!(
        std::env::var_os("CODEXEC_UPDATE").is_some(),
        "{file} is not what the table says; run the tests with CODEXEC_UPDATE=1"
    );
    std::fs::write(path, made).expect("written");
}

#[test]
fn every_shape_is_defined_and_used() {
    let document = openapi::document();
    let text = document.to_string();
    let prefix = "#/components/schemas/";
    let used: BTreeSet<&str> =
        text.split(prefix).skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let defined = document["components"]["schemas"].as_object().expect("schemas");
    let defined: BTreeSet<&str> = defined.keys().map(String::as_str).collect();
    assert_eq!(used, defined);
}

#[test]
fn ids_and_routes_are_unique() {
    let ids: BTreeSet<&str> = ROUTES.iter().map(|route| route.id).collect();
    let paths: BTreeSet<_> = ROUTES.iter().map(|route| (route.verb.name(), route.path)).collect();
    assert_eq!((ids.len(), paths.len()), (ROUTES.len(), ROUTES.len()));
}

#[test]
fn http_10_routes_that_change_something_need_write() {
    for route in ROUTES {
        let is_read = matches!(route.need, Need::Read | Need::ReadEveryone);
        let is_get = route.verb == route::Verb::Get;
        // The route of MCPProxy checks the scope itself, because its errors have another shape.
        assert_eq!(is_read, is_get || route.id == "mcpproxy_exec", "{}", route.id);
    }
}
