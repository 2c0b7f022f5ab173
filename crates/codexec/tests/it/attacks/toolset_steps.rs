//! Cases that use sessions, scripts, packages or logs by the tools of the toolset `codexec`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::attempt;
use super::bench::{Answered, Bench};
use super::case::{Case, fill, fill_all, texts};
use super::verdict::{COUNTED, Deed, problems, seen, worst};

const OPS: [&str; 4] = ["tool", "session_start", "session_send", "parallel"];

pub(super) fn is_one(case: &Case) -> bool {
    let steps = case.request["steps"].as_array().into_iter().flatten();
    steps.into_iter().any(|step| step["op"].as_str().is_some_and(|op| OPS.contains(&op)))
}

/// Runs a case on a server of its own; what is wrong, if anything is.
pub(super) fn steps(case: &Case) -> Option<String> {
    let broken = attempt(|| {
        let upstreams = COUNTED.map(|name| (name, json!({})));
        let mut bench = Bench::with_toolset(&upstreams, "", "codexec");
        let names = bench.names(&case.id);
        let mut run = Run { sessions: Vec::new(), answers: Vec::new() };
        for setup in case.request["setup"].as_array().into_iter().flatten() {
            run.step(&mut bench, &fill_all(setup, &names));
        }
        run.answers.clear();
        let before = bench.before();
        let seen = seen(&bench);
        let begun = Instant::now();
        let mut problems_found = Vec::new();
        for (number, step) in case.request["steps"].as_array().expect("steps").iter().enumerate() {
            let first = run.answers.len();
            run.step(&mut bench, &numbered(step, &names));
            let said: String = run.answers[first..].iter().map(|one| one.text.as_str()).collect();
            let key = number.to_string();
            for text in texts(&case.oracle.step_require[&key]) {
                if !said.contains(&text) {
                    problems_found.push(format!("step {key} did not say {text:?}: {said}"));
                }
            }
            for text in texts(&case.oracle.step_forbid[&key]) {
                if said.contains(&text) {
                    problems_found.push(format!("step {key} said {text:?}: {said}"));
                }
            }
        }
        if case.oracle.stat.as_deref() == Some("each_reply_has_own_marker") {
            problems_found.extend(run.answers.iter().skip(1).enumerate().filter_map(own_marker));
        }
        for answer in &mut run.answers {
            // Whatever is not there was not done.
            answer.status = if answer.status == "not_found" { "fail" } else { answer.status };
        }
        let status = worst(&run.answers);
        let deed = Deed { status, wall: begun.elapsed(), seen, before, ran: None };
        problems_found.extend(problems(&mut bench, &case.oracle, &deed));
        problems_found.extend(bench.broken_records());
        problems_found
    });
    (!broken.is_empty()).then(|| format!("{}: {}", case.id, broken.join("; ")))
}

/// A step that is made for many stays as it is until each is made of it.
fn numbered(step: &Value, names: &[(&str, String)]) -> Value {
    if step["op"] == "parallel" { step.clone() } else { fill_all(step, names) }
}

/// The number that an answer was to say, and no other's.
fn own_marker((number, answered): (usize, &Answered)) -> Option<String> {
    let flat: Value = serde_json::from_str(&answered.text).unwrap_or_default();
    let is_busy = flat["error_code"] == "SESSION_BUSY";
    let expected = format!("N{number}\n");
    (!is_busy && flat["stdout"] != expected.as_str())
        .then(|| format!("number {number} said {}", answered.text))
}

struct Run {
    /// The sessions by the names that the case has for them.
    sessions: Vec<(String, String)>,
    answers: Vec<Answered>,
}

impl Run {
    fn step(&mut self, bench: &mut Bench, step: &Value) {
        match step["op"].as_str().expect("an op") {
            // The case itself: what a thread of an earlier cell writes meanwhile.
            "sleep" => {
                std::thread::sleep(Duration::from_millis(step["ms"].as_u64().expect("a number")));
            }
            "parallel" => {
                let count = step["n"].as_u64().expect("a number");
                let send = |number: u64| {
                    let one = step["step"].as_object().expect("a step").iter();
                    let fill_one = |(key, value): (&String, &Value)| {
                        let text = value.as_str().expect("a text");
                        (key.clone(), json!(fill(text, &[("I", number.to_string())])))
                    };
                    let one = Value::Object(one.map(fill_one).collect());
                    self.send(bench, &one)
                };
                let ids: Vec<u64> = (0..count).map(send).collect();
                self.answers.extend(ids.into_iter().map(|id| bench.answered(id)));
            }
            _ => {
                let id = self.send(bench, step);
                let answered = bench.answered(id);
                let expected = texts(&step["expect"]);
                let is_expected =
                    expected.is_empty() || expected.iter().any(|one| one == answered.status);
                assert!(is_expected, "{step:.300}: {answered:?}");
                if let Some(name) = step["as"].as_str() {
                    let flat: Value = serde_json::from_str(&answered.text).expect("JSON");
                    let id = flat["session_id"].as_str().expect("an id").to_owned();
                    self.sessions.push((name.to_owned(), id));
                }
                self.answers.push(answered);
            }
        }
    }

    fn send(&self, bench: &mut Bench, step: &Value) -> u64 {
        let (tool, args) = match step["op"].as_str().expect("an op") {
            "tool" => (step["name"].as_str().expect("a name"), step["args"].clone()),
            "session_start" => ("start_session", json!({"language": step["language"]})),
            "session_send" => {
                let known = self.sessions.iter().find(|(name, _)| step["session"] == name.as_str());
                let id = &known.expect("a session that was started").1;
                ("send_to_session", json!({"session_id": id, "code": step["code"]}))
            }
            other => panic!("nobody knows how to {other}"),
        };
        bench.client.send_call(tool, &args)
    }
}
