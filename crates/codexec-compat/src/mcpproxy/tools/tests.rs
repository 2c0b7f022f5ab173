use super::*;

#[test]
fn the_list_costs_at_most_700_tokens() {
    let list = json!({"tools": tools(&ProxySettings::default())}).to_string();
    let tokens = list.chars().count().div_ceil(4);
    assert!(tokens <= 700, "{tokens} tokens: {list}");
}

#[test]
fn a_disabled_tool_is_not_listed() {
    let names = |is_enabled| {
        let listed = tools(&ProxySettings { is_enabled, ..ProxySettings::default() });
        listed.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(true), ["code_execution", "retrieve_tools", "call_tool"]);
    assert_eq!(names(false), ["retrieve_tools", "call_tool"]);
}
