use super::*;

#[test]
fn the_list_costs_at_most_230_tokens() {
    let list = serde_json::to_string(&json!({"tools": [run_python()]})).expect("json");
    let tokens = list.chars().count().div_ceil(4);
    assert!(tokens <= 230, "{tokens} tokens: {list}");
}
