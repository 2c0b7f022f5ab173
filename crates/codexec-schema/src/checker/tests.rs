use serde_json::json;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
#[track_caller]
fn check(schema: Value, fits: &[Value], others: &[Value]) {
    let checker = Checker::default();
    for value in fits {
        assert_eq!(checker.check(&schema, value, ""), Ok(()), "{schema} {value}");
    }
    for value in others {
        let flaw = checker.check(&schema, value, "");
        assert!(matches!(flaw, Err(CheckError::Wrong(_))), "{schema} {value} {flaw:?}");
    }
}

#[expect(clippy::needless_pass_by_value, reason = "so that a case is written in place")]
#[track_caller]
fn says(schema: Value, value: Value, sentence: &str) {
    let flaw = Checker::default().check(&schema, &value, "");
    assert_eq!(flaw, Err(CheckError::Wrong(vec![sentence.to_owned()])));
}

#[test]
fn types_and_bounds_of_single_values() {
    check(json!(true), &[json!(1)], &[]);
    check(json!(false), &[], &[json!(1)]);
    check(json!({}), &[json!(1), json!(null)], &[]);
    check(
        json!({"type": "integer"}),
        &[json!(1), json!(1.0), json!(-3)],
        &[json!(1.5), json!("1")],
    );
    check(json!({"type": ["string", "null"]}), &[json!("a"), json!(null)], &[json!(1)]);
    check(
        json!({"minimum": 1, "maximum": 3}),
        &[json!(1), json!(3), json!("x")],
        &[json!(0), json!(3.1)],
    );
    check(json!({"exclusiveMinimum": 1}), &[json!(1.1)], &[json!(1)]);
    check(json!({"minimum": 1, "exclusiveMinimum": true}), &[json!(2)], &[json!(1)]);
    check(json!({"multipleOf": 0.1}), &[json!(0.3), json!(1)], &[json!(0.35)]);
    check(json!({"multipleOf": 3}), &[json!(9)], &[json!(10)]);
    check(
        json!({"minLength": 2, "maxLength": 3}),
        &[json!("äö"), json!("abc")],
        &[json!("ä"), json!("abcd")],
    );
    check(json!({"pattern": "^a+$"}), &[json!("aa"), json!(1)], &[json!("b")]);
    check(
        json!({"enum": [1, "a", {"b": [1]}]}),
        &[json!(1.0), json!({"b": [1]})],
        &[json!(2), json!({"b": [2]})],
    );
    check(json!({"const": {"a": 1, "b": 2}}), &[json!({"b": 2, "a": 1})], &[json!({"a": 1})]);
}

#[test]
fn lists() {
    check(json!({"items": {"type": "integer"}}), &[json!([]), json!([1, 2])], &[json!([1, "2"])]);
    let tuple = json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false});
    check(tuple, &[json!(["a"]), json!(["a", 1])], &[json!([1]), json!(["a", 1, 2])]);
    let old = json!({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}});
    check(old, &[json!(["a", 1])], &[json!(["a", "b"])]);
    check(json!({"minItems": 1, "maxItems": 2}), &[json!([1])], &[json!([]), json!([1, 2, 3])]);
    check(
        json!({"uniqueItems": true}),
        &[json!([1, "1", [1]])],
        &[json!([1, 1.0]), json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}])],
    );
    check(json!({"contains": {"const": 1}}), &[json!([0, 1])], &[json!([]), json!([0])]);
    check(
        json!({"contains": {"const": 1}, "minContains": 2, "maxContains": 2}),
        &[json!([1, 1])],
        &[json!([1]), json!([1, 1, 1])],
    );
    check(
        json!({"prefixItems": [true], "unevaluatedItems": false}),
        &[json!([1])],
        &[json!([1, 2])],
    );
}

#[test]
fn objects() {
    let schema = json!({"properties": {"a": {"type": "integer"}}, "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false, "required": ["a"]});
    check(
        schema,
        &[json!({"a": 1, "xy": "s"}), json!(3)],
        &[json!({}), json!({"a": 1, "b": 1}), json!({"a": 1, "x": 1})],
    );
    check(
        json!({"additionalProperties": {"type": "integer"}}),
        &[json!({"a": 1})],
        &[json!({"a": "1"})],
    );
    check(
        json!({"propertyNames": {"pattern": "^[a-z]+$", "maxLength": 3}}),
        &[json!({"abc": 1})],
        &[json!({"A": 1}), json!({"abcd": 1})],
    );
    check(
        json!({"minProperties": 1, "maxProperties": 1}),
        &[json!({"a": 1})],
        &[json!({}), json!({"a": 1, "b": 1})],
    );
    check(
        json!({"dependentRequired": {"a": ["b"]}}),
        &[json!({"a": 1, "b": 1}), json!({"c": 1})],
        &[json!({"a": 1})],
    );
    check(
        json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
        &[json!({"b": 1})],
        &[json!({"a": 1})],
    );
    check(
        json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
        &[json!({"c": 1, "d": 1})],
        &[json!({"a": 1}), json!({"c": 1})],
    );
    let unevaluated = json!({"allOf": [{"properties": {"a": true}}], "anyOf": [{"properties": {"b": {"const": 1}}, "required": ["b"]}, true], "unevaluatedProperties": false});
    check(
        unevaluated,
        &[json!({"a": 1}), json!({"a": 1, "b": 1})],
        &[json!({"b": 2}), json!({"c": 1})],
    );
}

#[test]
fn combined_schemas() {
    check(json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), &[json!(1)], &[json!(0), json!(3)]);
    check(
        json!({"anyOf": [{"type": "string"}, {"minimum": 5}]}),
        &[json!("a"), json!(5)],
        &[json!(4)],
    );
    check(json!({"oneOf": [{"minimum": 1}, {"minimum": 5}]}), &[json!(2)], &[json!(0), json!(6)]);
    check(json!({"not": {"type": "string"}}), &[json!(1)], &[json!("a")]);
    let branching = json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}});
    check(branching, &[json!({"a": 1, "b": 1}), json!({"c": 1})], &[json!({"a": 1}), json!({})]);
    let refers = json!({"$defs": {"id": {"type": "integer"}}, "properties": {"id": {"$ref": "#/$defs/id", "maximum": 5}}});
    check(refers, &[json!({"id": 1})], &[json!({"id": "1"}), json!({"id": 6})]);
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"id": {"type": "integer"}}, "properties": {"id": {"$ref": "#/definitions/id", "maximum": 5}}});
    check(old, &[json!({"id": 6})], &[json!({"id": "1"})]);
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}}});
    check(tree, &[json!({"next": {"next": {"n": 1}}})], &[json!({"next": {"next": {"n": "1"}}})]);
}

#[test]
fn invalid_keywords_and_unresolved_references_allow_everything() {
    for schema in [
        json!({"type": 5}),
        json!({"type": "no such type"}),
        json!({"minimum": "x", "required": "a", "properties": 1, "allOf": {}, "pattern": "("}),
        json!({"$ref": "http://127.0.0.1:1/x"}),
        json!({"$ref": "#/nowhere"}),
        json!(5),
    ] {
        check(schema, &[json!({"a": "b"}), json!("x"), json!(1)], &[]);
    }
}

#[test]
fn messages_name_the_path_and_show_little_of_the_value() {
    says(json!({"type": "string"}), json!(5), "arguments: 5 is not of type \"string\"");
    let nested = json!({"properties": {"a": {"items": {"minimum": 1}}}});
    says(nested, json!({"a": [1, 0]}), "`a[1]`: 0 is less than the minimum of 1");
    says(
        json!({"properties": {"a": {"enum": [1, 2]}}}),
        json!({"a": 3}),
        "`a` must be one of [1,2]",
    );
    says(json!({"properties": {"a": {"required": ["b"]}}}), json!({"a": {}}), "`a.b` is missing");
    says(
        json!({"additionalProperties": false}),
        json!({"x": 1, "y": 1}),
        "`x`, `y` is not a parameter",
    );
    let Err(CheckError::Wrong(long)) =
        Checker::default().check(&json!({"type": "null"}), &json!("x".repeat(1 << 20)), "input")
    else {
        panic!("it does not fit");
    };
    assert!(long[0].len() < 300 && long[0].starts_with("`input`: \"xxx"), "{}", long[0]);
    let many = json!({"items": {"type": "string"}});
    let Err(CheckError::Wrong(many)) = Checker::default().check(&many, &json!(vec![1; 100]), "")
    else {
        panic!("it does not fit");
    };
    assert_eq!(many.len(), 5);
}

/// Without the budget, each would take minutes or overflow the stack.
#[test]
fn ord_2_every_check_ends_whatever_the_schema_and_value() {
    let numbers = json!(vec![1; 1_000_000]);
    let all: Vec<Value> = (0..4_000).map(|n| json!({"items": {"not": {"const": n + 2}}})).collect();
    let mut doubling = json!({"$defs": {"d0": {"type": "string"}}, "$ref": "#/$defs/d40"});
    for number in 1..=40 {
        let before = format!("#/$defs/d{}", number - 1);
        doubling["$defs"][format!("d{number}")] =
            json!({"anyOf": [{"$ref": before.as_str()}, {"$ref": before.as_str()}]});
    }
    let mut chain = json!({"$defs": {"d0": {"type": "string"}}, "$ref": "#/$defs/d20000"});
    for number in 1..=20_000 {
        chain["$defs"][format!("d{number}")] = json!({"$ref": format!("#/$defs/d{}", number - 1)});
    }
    let circle = json!({"$ref": "#"});
    let doubled_circle = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!({"a": deep});
    }
    let slow = json!({"items": {"pattern": "^(?:a|b)*a(?:a|b){200}$"}});
    let texts = json!(vec!["ab".repeat(8_000) + "b"; 1_000]);
    let checker = Checker::default();
    for (schema, value) in [
        (json!({"allOf": all}), &numbers),
        (doubling, &json!(1)),
        (chain, &json!(1)),
        (circle, &json!(1)),
        (doubled_circle, &deep),
        (slow, &texts),
        (json!({"pattern": "a"}), &json!("a".repeat(1 << 20))),
        (
            json!({"uniqueItems": true}),
            &json!((0..40).map(|n| vec![n; 100_000]).collect::<Vec<_>>()),
        ),
    ] {
        let shown: String = schema.to_string().chars().take(80).collect();
        assert_eq!(checker.check(&schema, value, ""), Err(CheckError::TooMuch), "{shown}");
        assert_eq!(checker.check_quickly(&schema, value, ""), Err(CheckError::TooMuch), "{shown}");
    }
    assert_eq!(checker.check(&json!({"items": {"type": "integer"}}), &numbers, ""), Ok(()));
}
