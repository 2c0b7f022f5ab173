use serde_json::{Value, json};

use super::*;

#[test]
fn the_list_costs_at_most_1900_tokens() {
    let list = serde_json::to_string(&json!({"tools": tools()})).expect("json");
    let tokens = list.chars().count().div_ceil(4);
    assert!(tokens <= 1_900, "{tokens} tokens: {list}");
}

/// Clients have cached and learnt these texts: a change must be meant.
#[test]
fn the_tools_are_those_that_clients_know() {
    let known: Value = serde_json::from_str(include_str!("tests/tools.json")).expect("json");
    let known: Vec<String> =
        known.as_array().expect("a list").iter().map(Value::to_string).collect();
    let listed: Vec<String> = tools().iter().map(|tool| json!(tool).to_string()).collect();
    assert_eq!(listed, known);
}
