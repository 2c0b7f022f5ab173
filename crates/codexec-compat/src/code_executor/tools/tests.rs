use super::*;

#[test]
fn the_list_costs_at_most_1200_tokens() {
    let list = serde_json::to_string(&json!({"tools": tools()})).expect("json");
    let tokens = list.chars().count().div_ceil(4);
    assert!(tokens <= 1_200, "{tokens} tokens: {list}");
}

#[test]
fn every_tool_has_an_output_schema() {
    for tool in tools() {
        assert!(tool.output_schema.is_some(), "{}", tool.name);
        assert!(super::super::is_tool(&tool.name), "{}", tool.name);
    }
}
