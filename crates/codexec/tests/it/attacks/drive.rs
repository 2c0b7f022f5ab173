//! Cases that are a list of steps: a scripted upstream and what is done with it, or raw bytes on
//! the server's standard input.

use std::time::Instant;

use serde_json::{Value, json};

use super::bench::{Answered, Bench, answered};
use super::case::{Case, fill, fill_all, texts};
use super::host::{SETTLING, within};
use super::verdict::{Deed, problems, seen, worst};
use super::{SETTINGS, attempt, skipped, start, steps, toolset_steps};

/// Runs a case against an upstream of its own; what is wrong, if anything is.
pub(super) fn upstream(case: &Case) -> Option<String> {
    let broken = attempt(|| {
        let name = case.request["upstream"]["name"].as_str().unwrap_or("fake").to_owned();
        // The plan needs names that only a bench has; an empty one stands in for it until then.
        let others = case.request["others"].as_object().into_iter().flatten();
        let mut servers = vec![(name.as_str(), json!({}))];
        servers.extend(others.map(|(name, plan)| (name.as_str(), plan.clone())));
        let mut bench = Bench::start(&servers, "");
        let names = bench.names(&case.id);
        bench.recorders.entry(&name, &fill_all(&case.request["upstream"], &names));
        let before = bench.before();
        let seen = seen(&bench);
        let begun = Instant::now();
        let mut answers = Vec::new();
        let mut problems = Vec::new();
        for step in case.request["drive"].as_array().expect("steps") {
            let Some(answered) = drive(&mut bench, &name, step, &names) else { continue };
            for text in texts(&step["forbid"]).iter().filter(|t| answered.whole.contains(*t)) {
                problems.push(format!("it said {text:?}"));
            }
            answers.push(answered);
        }
        let wall = begun.elapsed();
        if bench.has_run_since(&before) {
            problems.extend(bench.left_behind(&before.sandbox.workers));
        }
        let deed = Deed { status: worst(&answers), wall, seen, before, ran: None };
        let mut oracle = case.oracle.clone();
        oracle.require = oracle.require.iter().map(|text| fill(text, &names)).collect();
        problems.extend(super::verdict::problems(&mut bench, &oracle, &deed));
        problems.extend(bench.broken_records());
        problems
    });
    (!broken.is_empty()).then(|| format!("{}: {}", case.id, broken.join("; ")))
}

fn search(bench: &mut Bench) -> Answered {
    let id = bench.client.send_call("search_tools", &json!({"query": "echo tool"}));
    bench.answered(id)
}

fn drive(
    bench: &mut Bench,
    server: &str,
    step: &Value,
    names: &[(&str, String)],
) -> Option<Answered> {
    match step["op"].as_str().expect("an op") {
        // Asks for the server's tools, which starts it.
        "connect" => Some(bench.run(&format!("return Object.keys(tools[{server:?}])"), &json!({}))),
        "discover" => {
            // A server may still be starting: then the answer says that it is incomplete.
            let mut answered = search(bench);
            within(SETTLING, || {
                let is_complete = !answered.text.contains("[incomplete:");
                if !is_complete {
                    answered = search(bench);
                }
                is_complete
            });
            Some(answered)
        }
        "exec" => {
            let code = fill(step["code"].as_str().expect("code"), names);
            let id =
                bench.send(step["language"].as_str().expect("a language"), &code, &step["opts"]);
            Some(bench.answered(id))
        }
        "approve" => {
            steps::approve(bench, step);
            None
        }
        "server_restart" => {
            bench.restart();
            None
        }
        "host_write" | "host_copy" | "host_link" | "host_cut" => {
            steps::meddle(&fill_all(step, names));
            None
        }
        other if step["optional"] == true => {
            skipped(&format!("{} has the step {other}", names[0].1));
            None
        }
        other => panic!("nobody knows how to {other}"),
    }
}

/// Runs a case of several executions, one after the other, on a server of its own.
pub(super) fn steps(case: &Case) -> Option<String> {
    if toolset_steps::is_one(case) {
        return toolset_steps::steps(case);
    }
    let broken = attempt(|| {
        let mut bench = start(&format!("{SETTINGS}[files]\nallowed = [\"@@OUTDIR@@\"]\n"));
        let names = bench.names(&case.id);
        for setup in case.request["setup"].as_array().into_iter().flatten() {
            match setup["op"].as_str().expect("an op") {
                "git_init" => repository(&fill(setup["path"].as_str().expect("a path"), &names)),
                other => panic!("nobody knows how to {other}"),
            }
        }
        let before = bench.before();
        let seen = seen(&bench);
        let begun = Instant::now();
        let mut answers = Vec::new();
        let mut ran = None;
        for step in case.request["steps"].as_array().expect("steps") {
            match step["op"].as_str().expect("an op") {
                // Settings are read at the start; whatever happens to them then changes nothing.
                "config_reload" => {
                    let config = bench.state().join("config.toml");
                    let text = std::fs::read_to_string(&config).expect("it is there");
                    std::fs::write(&config, format!("{text}\n# unrelated\n")).expect("written");
                }
                "exec" => {
                    let code = fill(step["code"].as_str().expect("code"), &names);
                    let language = step["language"].as_str().expect("a language");
                    let id = bench.send(language, &code, &fill_all(&step["opts"], &names));
                    let answered = bench.answered(id);
                    if !step["expect"].is_null() {
                        let expected = texts(&step["expect"]);
                        assert!(expected.iter().any(|one| one == answered.status), "{answered:?}");
                    }
                    ran = Some((code, answered.execution.clone()));
                    answers.push(answered);
                }
                _ => {
                    let Some(answered) = drive(&mut bench, "fake", step, &names) else { continue };
                    let forbidden = texts(&step["forbid"]);
                    let said = forbidden.iter().find(|text| answered.whole.contains(*text));
                    assert_eq!(said, None, "{answered:?}");
                    answers.push(answered);
                }
            }
        }
        let status = worst(&answers);
        let deed = Deed { status, wall: begun.elapsed(), seen, before, ran };
        let mut problems = problems(&mut bench, &case.oracle, &deed);
        problems.extend(bench.broken_records());
        problems
    });
    (!broken.is_empty()).then(|| format!("{}: {}", case.id, broken.join("; ")))
}

/// As much of one as tools look at.
fn repository(path: &str) {
    let git = std::path::Path::new(path).join(".git");
    std::fs::create_dir_all(git.join("hooks")).expect("made");
    std::fs::write(git.join("config"), "[core]\n\tbare = false\n").expect("written");
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("written");
}

/// Runs a case of a hostile client; what is wrong, if anything is.
pub(super) fn client(case: &Case) -> Option<String> {
    if toolset_steps::is_one(case) {
        return toolset_steps::steps(case);
    }
    let broken = attempt(|| {
        let mut bench = start("");
        let names = bench.names(&case.id);
        let before = bench.before();
        let seen = seen(&bench);
        let begun = Instant::now();
        let mut answers = Vec::new();
        for step in case.request["steps"].as_array().expect("steps") {
            match step["op"].as_str().expect("an op") {
                "stdin" => {
                    let text = fill(step["text"].as_str().expect("text"), &names);
                    bench.client.write_bytes(text.as_bytes());
                }
                "stdin_hex" => bench.client.write_bytes(&bytes(&step["hex"])),
                "mcp" => {
                    let method = step["method"].as_str().expect("a method");
                    let reply = bench.client.request(method, &json!({}));
                    assert_eq!(step["expect"], answered(&reply).status, "{reply}");
                    answers.push(answered(&reply));
                }
                other => panic!("nobody knows how to {other}"),
            }
        }
        let wall = begun.elapsed();
        let deed = Deed { status: worst(&answers), wall, seen, before, ran: None };
        let mut problems = problems(&mut bench, &case.oracle, &deed);
        let next = bench.run("return 6 * 7", &json!({})).text;
        if next != "42" {
            problems.push(format!("the next execution said {next}"));
        }
        problems
    });
    (!broken.is_empty()).then(|| format!("{}: {}", case.id, broken.join("; ")))
}

fn bytes(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().expect("hex").as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    hex.chunks(2).map(|pair| byte(pair).expect("two digits")).collect()
}
