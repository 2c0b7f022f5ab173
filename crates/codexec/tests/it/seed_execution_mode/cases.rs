use serde_json::{Value, json};

use super::{Seed, text};

const CASES: &str = include_str!("cases.json");
/// Where each of them is pointed to.
const PAGE: &str = include_str!("../../../../../docs/reference/seed-003.md");

fn cases() -> Vec<Value> {
    serde_json::from_str(CASES).expect("cases")
}

#[test]
fn every_case_holds() {
    let Some(mut seed) = Seed::start() else { return };
    let mut failed = Vec::new();
    for case in cases() {
        let result = seed.run(&case["request"]);
        let mut problems = Vec::new();
        let structured = &result["structuredContent"];
        for (key, value) in case["structured"].as_object().expect("fields") {
            if structured[key] != *value {
                problems.push(format!("{key} is {} and not {value}", structured[key]));
            }
        }
        // Where the text is given, nothing else may be there.
        if let Some(expected) = case["text"].as_str() {
            let keys = |value: &Value| -> Vec<String> {
                value.as_object().expect("fields").keys().cloned().collect()
            };
            if keys(structured) != keys(&case["structured"]) {
                problems.push(format!("the fields are {:?}", keys(structured)));
            }
            if text(&result) != expected {
                problems.push(format!("the text is {:?} and not {expected:?}", text(&result)));
            }
        }
        let is_error = structured["status"] != "success";
        if result["isError"] != json!(is_error) {
            problems.push(format!("isError is {}", result["isError"]));
        }
        if !problems.is_empty() {
            failed.push(format!("{}: {}", case["case"], problems.join("; ")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_page_names_every_case_and_no_other() {
    let cases = cases();
    let names: Vec<&str> =
        cases.iter().map(|case| case["case"].as_str().expect("a name")).collect();
    for name in &names {
        assert!(PAGE.contains(&format!("`{name}`")), "the page does not name {name:?}");
        assert_eq!(names.iter().filter(|other| other == &name).count(), 1, "{name} is there twice");
    }
    let told = PAGE.lines().filter_map(|line| line.strip_prefix("| ")).filter_map(|row| {
        let (_, proof) = row.trim_end_matches(" |").rsplit_once(" | ")?;
        proof.strip_prefix("case ")
    });
    for name in told.flat_map(|proof| proof.split(", ")) {
        assert!(names.contains(&name.trim_matches('`')), "there is no case {name}");
    }
}
