use super::*;

#[test]
fn the_compact_list_costs_at_most_450_tokens() {
    let list = serde_json::to_string(&json!({"tools": compact()})).expect("json");
    let tokens = list.chars().count().div_ceil(4);
    assert!(tokens <= 450, "{tokens} tokens: {list}");
}
