use serde_json::{Map, json};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
#[track_caller]
fn check(schema: Value, args: Value, expected: Result<(), &str>) {
    let checker = Checker::default();
    let expected = expected.map_err(str::to_owned);
    let quickly = match check_quickly(&checker, &schema, &args) {
        ArgumentCheck::Invalid(why) => Err(why),
        ArgumentCheck::Valid | ArgumentCheck::Unfinished => Ok(()),
    };
    assert_eq!(super::check(&checker, &schema, &args), expected);
    assert_eq!(quickly, expected);
}

#[test]
fn messages_name_the_flaw_and_the_parameters() {
    let schema = json!({"type": "object", "required": ["owner"], "additionalProperties": false, "properties": {
        "owner": {"type": "string"}, "state": {"enum": ["open", "closed"]}, "labels": {"type": "array", "items": {"type": "string"}}}});
    let parameters = "parameters: owner (required), state, labels";
    let wrong = |what: &str| format!("{what}; {parameters}");
    check(schema.clone(), json!({"owner": "me", "labels": ["a"]}), Ok(()));
    check(schema.clone(), json!({}), Err(&wrong("`owner` is missing")));
    check(
        schema.clone(),
        json!({"owner": "me", "onwer": 1}),
        Err(&wrong("`onwer` is not a parameter")),
    );
    check(
        schema.clone(),
        json!({"owner": "me", "state": "shut"}),
        Err(&wrong("`state` must be one of [\"open\",\"closed\"]")),
    );
    check(
        schema,
        json!({"owner": 5, "labels": [1]}),
        Err(&wrong(
            "`owner`: 5 is not of type \"string\"; `labels[0]`: 1 is not of type \"string\"",
        )),
    );
}

#[test]
fn unusable_schemas_accept_any_arguments() {
    check(json!({"type": "no such type"}), json!({}), Ok(()));
    check(json!({"properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}), json!({"a": 1}), Ok(()));
    check(json!({"$ref": "#"}), json!({}), Ok(()));
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert("d40".to_owned(), json!(false));
    check(json!({"$defs": definitions, "$ref": "#/$defs/d0"}), json!({}), Ok(()));
}

#[test]
fn references_inside_the_schema_are_followed() {
    let schema =
        json!({"$defs": {"id": {"type": "integer"}}, "properties": {"id": {"$ref": "#/$defs/id"}}});
    check(schema.clone(), json!({"id": 1}), Ok(()));
    check(
        schema,
        json!({"id": "1"}),
        Err("`id`: \"1\" is not of type \"integer\"; parameters: id"),
    );
}
