use super::*;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).expect("JSON")
}

#[track_caller]
fn refuses(ask: &Ask, why: &str) {
    let error = ask.estimate_size().expect_err("too much");
    assert_eq!(error.code, CallCode::InvalidArgs);
    assert!(error.message.starts_with(why), "{}", error.message);
}

#[test]
fn values_and_levels_inside_strings_are_not_counted() {
    let shape = |text| JsonShape::of(&json(text));
    assert_eq!(shape("1"), JsonShape { values: 1, depth: 0 });
    assert_eq!(shape(r#"{"a":[1,2,"[,\"{\\"],"b":{}}"#).depth, 2);
    assert!((5..=7).contains(&shape(r#"{"a":[1,2,"[,\"{\\"],"b":{}}"#).values));
}

#[test]
fn ord_1_an_oversized_ask_is_refused_before_it_is_parsed() {
    let tool = |args: String| Ask::Tool {
        server: "s".to_owned(),
        tool: "t".to_owned(),
        args: json(&args),
    };
    refuses(&tool(format!("[{}1]", "1,".repeat(MAX_VALUES))), "arguments: 100");
    refuses(&tool(format!("{}{}", "[".repeat(100), "]".repeat(100))), "arguments: 100 levels");
    assert!(tool(format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20))).estimate_size().is_ok());
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    refuses(&Ask::Schema { name: long.clone() }, "name: it has 16385 bytes");
    let uri = long.clone();
    refuses(&Ask::ReadResource { server: "s".to_owned(), uri }, "uri: it has");
    refuses(&Ask::Discover { words: vec![long] }, "words: they have 16385 bytes");
    refuses(&Ask::Discover { words: vec![String::new(); MAX_WORDS + 1] }, "words: there are more");
}

#[test]
fn ord_1_the_weight_of_an_ask_grows_with_its_values() {
    let many =
        Ask::Own { name: "x".to_owned(), args: json(&format!("[{}1]", "1,".repeat(50_000))) };
    let weight = many.estimate_size().expect("allowed");
    assert!(weight > 2_000_000, "{weight}");
}
