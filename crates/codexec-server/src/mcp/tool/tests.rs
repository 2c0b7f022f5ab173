use super::*;

#[test]
fn the_compact_list_costs_at_most_450_tokens() {
    let list = serde_json::to_string(&json!({"tools": compact()})).expect("json");
    let tokens = list.chars().count().div_ceil(4);
    assert!(tokens <= 450, "{tokens} tokens: {list}");
}

#[test]
fn every_language_is_offered() {
    let tools = compact();
    let schema = serde_json::to_value(&tools[0].input_schema).expect("json");
    let languages = json!(["typescript", "javascript", "python", "bash", "node"]);
    assert_eq!(schema["properties"]["language"]["enum"], languages);
    assert_eq!(schema["properties"]["working_dir"]["type"], "string");
}
