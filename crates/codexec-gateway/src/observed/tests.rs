use serde_json::json;

use super::*;

fn tool(name: &str, description: &str) -> Tool {
    Tool::read(&json!({"name": name, "description": description})).expect("a tool")
}

fn server() -> ServerName {
    ServerName::new("s").expect("a name")
}

#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
/// The shape of these results, one after the other.
#[track_caller]
fn check(results: &[Value], expected: Value) {
    let mut seen = Seen::default();
    for result in results {
        seen.look(result);
    }
    assert_eq!(seen.schema(), expected);
}

#[test]
fn shapes_grow_with_what_is_seen() {
    let text = || json!({"type": "string"});
    check(&[], json!({}));
    check(&[json!("a"), json!("b")], text());
    check(&[json!("a"), Value::Null], json!({"anyOf": [{"type": "string"}, {"type": "null"}]}));
    check(
        &[json!({"id": 1, "name": "a"}), json!({"id": 2})],
        json!({"type": "object", "properties": {"id": {"type": "integer"}, "name": text()}, "required": ["id"]}),
    );
    check(
        &[json!([]), json!([{"x": 1.5}, {"x": "y"}])],
        json!({"type": "array", "items": {"type": "object", "required": ["x"],
            "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "number"}]}}}}),
    );
    check(&[json!([])], json!({"type": "array"}));
}

#[test]
fn txt_3_names_that_are_data_are_not_kept() {
    let map = |values: Value| json!({"type": "object", "additionalProperties": values});
    let number = || json!({"type": "integer"});
    for name in
        ["ann@example.com", "2026-01-01", "a b", "u-123456789", &"x".repeat(60), "\u{202e}x"]
    {
        check(&[json!({name: 1})], map(number()));
        check(&[json!({"plain": 1}), json!({name: 1})], map(number()));
    }
    let many: serde_json::Map<String, Value> =
        (0..41).map(|n| (format!("k{n}"), json!(n))).collect();
    check(&[Value::Object(many)], map(number()));
    // Each call names others.
    let each: Vec<Value> = (0..60).map(|n| json!({format!("user{n}"): n})).collect();
    check(&each, map(number()));
}

#[test]
fn txt_3_no_value_is_kept_and_nothing_is_without_end() {
    let observed = Observed::new(None);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let _guard = runtime.enter();
    let mut deep = json!("secret");
    for _ in 0..100 {
        deep = json!({"secret_free": [deep, "secret"]});
    }
    let wide: Vec<Value> = (0..10_000).map(|n| json!({"n": n, "text": "secret"})).collect();
    let tool = tool("t", "");
    observed.look(&server(), &tool, &deep);
    observed.look(&server(), &tool, &json!(wide));
    let schema = observed.schema(&server(), &tool).expect("seen").to_string();
    assert!(!schema.contains("\"secret\"") && schema.len() < 2_000, "{schema}");
    for n in 0..2_000 {
        observed.look(&server(), &tool, &json!({format!("f{n}"): 1}));
    }
    assert_eq!(tool.recorded_results.load(Ordering::Relaxed), LOOKS);
}

#[tokio::test]
async fn what_was_seen_outlives_the_process_and_not_the_definition() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path().to_path_buf();
    let before = Observed::new(Some(&home));
    before.look(&server(), &tool("t", "one"), &json!({"id": 1}));
    before.look(&server(), &tool("u", "one"), &json!("text"));
    before.save();

    let after = Observed::new(Some(&home));
    let id =
        json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    assert_eq!(after.schema(&server(), &tool("t", "one")), Some(id.clone()));
    assert_eq!(after.schema(&server(), &tool("t", "two")), None);
    after.look(&server(), &tool("t", "two"), &json!([1]));
    let list = json!({"type": "array", "items": {"type": "integer"}});
    assert_eq!(after.schema(&server(), &tool("t", "two")), Some(list));
    after.save();
    let kept = Observed::new(Some(&home));
    assert_eq!(kept.schema(&server(), &tool("t", "one")), None);
    assert_eq!(kept.schema(&server(), &tool("u", "one")), Some(json!({"type": "string"})));
    let files: Vec<_> =
        std::fs::read_dir(home.join("observed")).expect("there").flatten().collect();
    assert_eq!(files.len(), 1, "nothing half written is left: {files:?}");
}

#[tokio::test]
async fn a_file_that_is_wrong_is_none() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path().to_path_buf();
    let tool = tool("t", "");
    let definition = tool.definition_hash();
    let hidden = json!({"t": {"definition": definition, "seen": {"object": {"times": 1,
        "fields": {"a\u{202e}": {"times": 1, "seen": {"kinds": ["string"]}}}}}}});
    std::fs::create_dir(home.join("observed")).expect("made");
    for text in ["", "{", "[]", "{\"t\": 5}", &hidden.to_string(), &"[".repeat(100_000)] {
        std::fs::write(home.join("observed/s.json"), text).expect("written");
        let observed = Observed::new(Some(&home));
        assert_eq!(observed.schema(&server(), &tool), None, "{text}");
        observed.look(&server(), &tool, &json!(1));
        observed.save();
        let again = Observed::new(Some(&home)).schema(&server(), &tool);
        assert_eq!(again, Some(json!({"type": "integer"})));
    }
}

#[test]
fn a_promise_is_worth_more_than_what_was_seen() {
    let observed = Observed::new(None);
    let promised = Tool::read(&json!({"name": "t", "outputSchema": {"type": "object"}}));
    let promised = promised.expect("a tool");
    observed.look(&server(), &promised, &json!({"id": 1}));
    assert_eq!(observed.schema(&server(), &promised), None);
}
