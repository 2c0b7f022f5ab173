//! `cases.jsonl`: one request and its reply a line, with what it proves in our own words.
//! `docs/reference/seed-000.md` says which statement of the documentation each one is for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Seed;
use crate::world::World;

const CASES: &str = include_str!("cases.jsonl");
const PAGE: &str = include_str!("../../../../../docs/reference/seed-000.md");

fn cases() -> Vec<Value> {
    CASES.lines().map(|line| serde_json::from_str(line).expect("a case")).collect()
}

#[test]
fn every_case_gives_what_it_says() {
    let Some(world) = World::find() else { return };
    std::fs::write(world.folder.path().join("notes.txt"), "first\nsecond\n").expect("written");
    let folder = world.folder.path().display().to_string();
    let mut clients: BTreeMap<String, Seed> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let case: Value = serde_json::from_str(&case.to_string().replace("{folder}", &folder))
            .expect("still a case");
        // Discoveries are counted by client: there are more cases than one has.
        let name = case["client"].as_str().unwrap_or_default().to_owned();
        let seed = clients.entry(name).or_insert_with(|| Seed::in_world(&world, |_| {}));
        let tool = case["tool"].as_str().expect("a tool");
        let (got, expected) = match case.get("refused") {
            Some(refused) => (seed.refused(tool, &case["arguments"]), refused.clone()),
            None => (without_times(seed.executed(tool, &case["arguments"])), gives(&case)),
        };
        if got != expected {
            wrong.push(format!("{}: {got}\ninstead of {expected}", case["id"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Most executions call no tools.
fn gives(case: &Value) -> Value {
    let mut gives = case["gives"].clone();
    for field in ["toolCallsMade", "toolCallSummary"] {
        let fields = gives.as_object_mut().expect("an object");
        fields.entry(field).or_insert_with(|| json!([]));
    }
    gives
}

/// Without the times, which have to be there.
fn without_times(mut executed: Value) -> Value {
    let fields = executed.as_object_mut().expect("an object");
    let took = fields.remove("executionTimeMs").expect("a time");
    assert!(took.as_u64().is_some(), "{took}");
    for summary in fields["toolCallSummary"].as_array_mut().expect("a list") {
        let summary = summary.as_object_mut().expect("an object");
        for field in ["totalDurationMs", "averageDurationMs", "lastCallDurationMs"] {
            let took = summary.remove(field).expect("a time");
            assert!(took.as_f64().is_some_and(|ms| ms > 0.0), "{took}");
        }
    }
    executed
}

#[test]
fn every_case_stands_on_the_page_and_proves_something() {
    let mut ids = Vec::new();
    for case in cases() {
        let id = case["id"].as_str().expect("an id").to_owned();
        assert!(PAGE.contains(&format!("`{id}`")), "{id} is not on the page");
        assert!(case["proves"].as_str().is_some_and(|text| !text.is_empty()), "{id}");
        assert!(!ids.contains(&id), "{id} stands there twice");
        ids.push(id);
    }
}
