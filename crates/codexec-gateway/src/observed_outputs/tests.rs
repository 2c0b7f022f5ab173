use serde_json::json;

use super::*;

fn tool(name: &str, description: &str) -> Tool {
    Tool::read(&json!({"name": name, "description": description})).expect("a tool")
}

fn server() -> ServerName {
    ServerName::new("s").expect("a name")
}

#[test]
fn txt_3_no_value_is_stored_and_everything_is_bounded() {
    let observed = ObservedOutputs::new(None);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let _guard = runtime.enter();
    let mut deep = json!("secret");
    for _ in 0..100 {
        deep = json!({"secret_free": [deep, "secret"]});
    }
    let wide: Vec<Value> = (0..10_000).map(|n| json!({"n": n, "text": "secret"})).collect();
    let tool = tool("t", "");
    observed.observe(&server(), &tool, &deep);
    observed.observe(&server(), &tool, &json!(wide));
    let schema = observed.schema(&server(), &tool).expect("seen").to_string();
    assert!(!schema.contains("\"secret\"") && schema.len() < 2_000, "{schema}");
    for n in 0..2_000 {
        observed.observe(&server(), &tool, &json!({format!("f{n}"): 1}));
    }
    assert_eq!(tool.recorded_results.load(Ordering::Relaxed), MAX_OBSERVATIONS);
}

#[tokio::test]
async fn observations_outlive_the_process_but_not_the_definition() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path().to_path_buf();
    let before = ObservedOutputs::new(Some(&home));
    before.observe(&server(), &tool("t", "one"), &json!({"id": 1}));
    before.observe(&server(), &tool("u", "one"), &json!("text"));
    before.save();

    let after = ObservedOutputs::new(Some(&home));
    let id =
        json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    assert_eq!(after.schema(&server(), &tool("t", "one")), Some(id.clone()));
    assert_eq!(after.schema(&server(), &tool("t", "two")), None);
    after.observe(&server(), &tool("t", "two"), &json!([1]));
    let list = json!({"type": "array", "items": {"type": "integer"}});
    assert_eq!(after.schema(&server(), &tool("t", "two")), Some(list));
    after.save();
    let reloaded = ObservedOutputs::new(Some(&home));
    assert_eq!(reloaded.schema(&server(), &tool("t", "one")), None);
    assert_eq!(reloaded.schema(&server(), &tool("u", "one")), Some(json!({"type": "string"})));
    let files: Vec<_> =
        std::fs::read_dir(home.join("observed")).expect("there").flatten().collect();
    assert_eq!(files.len(), 1, "nothing half written is left: {files:?}");
}

#[tokio::test]
async fn an_invalid_file_counts_as_missing() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path().to_path_buf();
    let tool = tool("t", "");
    let definition = tool.definition_hash();
    let hidden = json!({"t": {"definition": definition, "seen": {"object": {"times": 1,
        "fields": {"a\u{202e}": {"times": 1, "seen": {"kinds": ["string"]}}}}}}});
    std::fs::create_dir(home.join("observed")).expect("made");
    for text in ["", "{", "[]", "{\"t\": 5}", &hidden.to_string(), &"[".repeat(100_000)] {
        std::fs::write(home.join("observed/s.json"), text).expect("written");
        let observed = ObservedOutputs::new(Some(&home));
        assert_eq!(observed.schema(&server(), &tool), None, "{text}");
        observed.observe(&server(), &tool, &json!(1));
        observed.save();
        let again = ObservedOutputs::new(Some(&home)).schema(&server(), &tool);
        assert_eq!(again, Some(json!({"type": "integer"})));
    }
}

#[test]
fn an_output_schema_wins_over_observations() {
    let observed = ObservedOutputs::new(None);
    let tool = Tool::read(&json!({"name": "t", "outputSchema": {"type": "object"}}));
    let tool = tool.expect("a tool");
    observed.observe(&server(), &tool, &json!({"id": 1}));
    assert_eq!(observed.schema(&server(), &tool), None);
}
