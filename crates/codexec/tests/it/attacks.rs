//! Attack cases against the built binary: data in `cases/attacks.jsonl`, verdicts by what the host
//! sees. A test for each area, and every failing case in its message.

pub(crate) mod bait;
pub(crate) mod bench;
pub(crate) mod case;
mod drive;
pub(crate) mod host;
pub(crate) mod recorder;
mod steps;
mod toolset_steps;
mod verdict;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use bench::Bench;
use case::{Case, fill};
use host::Sandbox;
use verdict::{Deed, problems, seen};

/// An execution that must go well whatever happens beside it.
const SIBLING: &str = "return 'sibling ' + 6 * 7";
/// What is not over by then lasts.
const MOMENT: Duration = Duration::from_millis(100);
/// Only `fake` may be called: `denied` and `fake2` are there, and must never hear of it.
const SETTINGS: &str = "[tools]\nallowed = [\"fake.*\"]\n";

#[test]
fn js_escape_cases() {
    check(&cases("js-escape"));
}

#[test]
fn js_policy_cases() {
    check(&cases("js-policy"));
}

#[test]
fn js_time_cases() {
    check(&cases("js-time"));
}

#[test]
fn js_memory_cases() {
    check(&cases("js-mem"));
}

#[test]
fn js_output_cases() {
    check(&cases("js-output"));
}

#[test]
fn js_bridge_cases() {
    check(&cases("js-bridge"));
}

#[test]
fn js_sampling_cases() {
    check(&cases("js-sampling"));
}

#[test]
fn ts_parser_cases() {
    check(&cases("ts-parser"));
}

#[test]
fn upstream_cases() {
    let failed: Vec<String> = cases("upstream").iter().filter_map(drive::upstream).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn quarantine_cases() {
    let failed: Vec<String> = cases("quarantine").iter().filter_map(drive::upstream).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn client_cases() {
    let mut cases = cases("http");
    // Requests over HTTP are sent by `http::attacks`.
    cases.retain(|case| case.language != "http");
    let failed: Vec<String> = cases.iter().filter_map(drive::client).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn python_file_cases() {
    check(&cases("py-fs"));
}

#[test]
fn python_network_cases() {
    check(&cases("py-net"));
}

#[test]
fn python_kernel_cases() {
    check(&cases("py-kernel"));
}

#[test]
fn python_bridge_cases() {
    check(&cases("py-bridge"));
}

#[test]
fn bash_cases() {
    check(&cases("bash"));
}

#[test]
fn node_cases() {
    check(&cases("node"));
}

#[test]
fn resource_cases() {
    check(&cases("resource"));
}

#[test]
fn python_resource_cases() {
    check(&cases("py-resource"));
}

#[test]
fn bash_resource_cases() {
    check(&cases("sh-resource"));
}

#[test]
fn node_resource_cases() {
    check(&cases("nd-resource"));
}

#[test]
fn process_cases() {
    check(&cases("process"));
}

#[test]
fn output_cases() {
    check(&cases("output"));
}

#[test]
fn source_cases() {
    check(&cases("source"));
}

#[test]
fn file_cases() {
    check(&cases("files"));
}

#[test]
fn session_cases() {
    check(&cases("session"));
}

#[test]
fn fail_closed_cases() {
    check(&cases("fail-closed"));
}

#[test]
fn no_case_is_left_out() {
    let areas = ["escape", "policy", "time", "mem", "output", "bridge", "sampling"];
    let areas = areas.map(|area| format!("js-{area}"));
    let programs = ["py-fs", "py-net", "py-kernel", "py-bridge", "bash", "node", "resource"];
    let resources = ["py-resource", "sh-resource", "nd-resource"];
    let others = ["process", "output", "source", "files", "session", "fail-closed"];
    let rest = ["ts-parser", "upstream", "quarantine", "http"];
    for case in case::all() {
        let area = case.area.as_str();
        let is_run = areas.contains(&case.area)
            || programs.contains(&area)
            || others.contains(&area)
            || resources.contains(&area)
            || rest.contains(&area);
        assert!(is_run, "{} is of the area {area}, which nobody runs", case.id);
    }
}

/// The cases of an area that mean something here. There is no sampling yet.
fn cases(area: &str) -> Vec<Case> {
    let mut cases = case::all();
    cases.retain(|case| case.area == area);
    assert!(!cases.is_empty(), "no case of {area}");
    cases.retain(|case| match case.applies_if.as_deref() {
        None | Some("stdio" | "packages" | "http" | "http_sessions" | "rate_limit") => true,
        // A plain user need not have been given one.
        Some("cgroup") if host::is_root() => true,
        Some(absent) => {
            skipped(&format!("{} needs {absent}", case.id));
            false
        }
    });
    cases
}

#[expect(clippy::print_stderr, reason = "a skip is never silent")]
fn skipped(what: &str) {
    eprintln!("SKIPPED: {what}, which codexec does not have");
}

/// Runs code cases on one server; on a new one after a failure.
fn check(cases: &[Case]) {
    let mut failed = Vec::new();
    let mut bench = None;
    let mut control = None;
    for case in cases {
        if case.request.is_object() {
            failed.extend(drive::steps(case));
            continue;
        }
        let outcome = attempt(|| {
            for permitted in permissions(case) {
                granted(control.get_or_insert_with(|| start("")), &permitted);
            }
            match settings(case) {
                Some(settings) => attack(&mut start(&settings), case),
                None => attack(bench.get_or_insert_with(|| start(SETTINGS)), case),
            }
        });
        if !outcome.is_empty() {
            failed.push(format!("{}: {}", case.id, outcome.join("; ")));
            (bench, control) = (None, None);
        }
    }
    for server in [bench, control].iter_mut().flatten() {
        failed.extend(server.broken_records());
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What a case wants of a server of its own.
fn settings(case: &Case) -> Option<String> {
    let config = case.opts["config"].as_object()?;
    let mut limits = String::new();
    for (key, value) in config {
        let key = match key.as_str() {
            "workspace_quota_mb" => "disk-mib",
            other => other,
        };
        limits.push_str(&format!("{key} = {value}\n"));
    }
    Some(format!("{SETTINGS}[limits]\n{limits}"))
}

/// What went wrong, be it by a verdict or by a panic of the harness.
fn attempt(run: impl FnOnce() -> Vec<String>) -> Vec<String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        vec![text.unwrap_or_else(|| "the harness panicked".to_owned())]
    })
}

fn start(settings: &str) -> Bench {
    let upstreams = verdict::COUNTED.map(|name| (name, json!({})));
    Bench::start(&upstreams, settings)
}

/// The calls that a case must not get through, as (server, tool).
fn permissions(case: &Case) -> Vec<(String, String)> {
    let pair = |check: &String| {
        let whose = check.strip_prefix("upstream_calls(")?.strip_suffix(")==0")?;
        let (server, tool) = whose.split_once(':').unwrap_or((whose, "echo"));
        Some((server.to_owned(), tool.to_owned()))
    };
    case.oracle.host.iter().filter_map(pair).collect()
}

/// The control: with permission the same call does get through. Without it, "nothing arrived"
/// would say nothing.
fn granted(control: &mut Bench, (server, tool): &(String, String)) {
    let before = control.recorders.calls(server, Some(tool)).len();
    let code = format!("return await callTool({server:?}, {tool:?}, {{}})");
    let answered = control.run(&code, &json!({"allowed_tools": ["*"]}));
    assert_eq!(answered.status, "ok", "the control of {server}.{tool}: {}", answered.text);
    let after = control.recorders.calls(server, Some(tool)).len();
    assert_eq!(after, before + 1, "the control of {server}.{tool} did not arrive");
}

/// Runs one case of code, with a sibling beside it if it lasts, else behind it.
fn attack(bench: &mut Bench, case: &Case) -> Vec<String> {
    let names = bench.names(&case.id);
    let code = fill(case.request.as_str().expect("code"), &names);
    let is_program = ["python", "bash", "node"].contains(&case.language.as_str());
    if is_program {
        bench.warm_up();
    }
    let before = bench.before();
    let seen = seen(bench);
    let begun = Instant::now();
    let attack = bench.send(&case.language, &code, &case.opts);
    let lasts = !bench.is_answered(attack, MOMENT);
    let mut workers = before.sandbox.workers.clone();
    let mut sibling = None;
    if lasts {
        sibling = Some(bench.run(SIBLING, &Value::Null));
        // Whoever goes from here on goes with the attack, unless that was about to end anyway.
        let there = Sandbox::of(bench.pid()).workers;
        if !bench.is_answered(attack, 3 * MOMENT) {
            workers = there;
        }
    }
    let answered = bench.answered(attack);
    let wall = begun.elapsed();
    let left = match bench.has_run_since(&before) {
        true if is_program => bench.left_of_programs(&before),
        true => bench.left_behind(&workers),
        false => None,
    };
    let sibling = sibling.unwrap_or_else(|| bench.run(SIBLING, &Value::Null));
    let ran = Some((code, answered.execution.clone()));
    let deed = Deed { status: answered.status, wall, seen, before, ran };
    let mut problems = problems(bench, &case.oracle, &deed);
    problems.extend(left);
    if sibling.text != "sibling 42" {
        problems.push(format!("the sibling said {}", sibling.text));
    }
    problems
}
