//! Upstreams that do their worst, one after the other and beside a good one: each costs its own
//! call, and codexec neither waits nor grows.

use std::path::Path;

use serde_json::{Value, json};

use crate::attacks::host::{memory_kib, within};
use crate::startup::python;
use crate::support::{Client, PATIENCE, keep_settings};

const SCRIPTED: &str = include_str!("../../../codexec-gateway/tests/scripted.py");
/// What codexec may grow by, whatever an upstream sends.
const GROWTH_KIB: u64 = 64 << 10;

/// The entry of an upstream that misbehaves by this plan.
pub(crate) fn scripted(plan: &Value) -> Value {
    json!({"command": python(), "args": ["-S", "-c", SCRIPTED, plan.to_string()]})
}

/// What one call of a tool comes to, as text: its value, or its error's message.
fn outcome(client: &mut Client, server: &str, tool: &str) -> String {
    client.run(&calling(server, tool)).fine()
}

fn calling(server: &str, tool: &str) -> String {
    format!(
        "try {{ return JSON.stringify(await tools.{server}.{tool}({{}})) }} \
         catch (error) {{ return 'failed: ' + error.message }}"
    )
}

fn health(client: &mut Client, server: &str) -> Value {
    let text = client.call("health", &json!({})).fine();
    let health: Value = serde_json::from_str(&text).expect("JSON");
    let servers = health["servers"].as_array().expect("servers");
    servers.iter().find(|one| one["name"] == server).expect("it is there").clone()
}

/// THREAT[UP-9]: what one upstream does is one upstream's loss.
#[test]
fn up_9_bad_answers_cost_their_own_call_and_no_memory() {
    let cases = [
        ("garbage", json!({"garbage": true}), "echo", "{}"),
        ("babble", json!({"babble": 20_000}), "echo", "failed: server \"bad\": it did not start"),
        ("no start", json!({"start": "die"}), "echo", "failed: server \"bad\": it did not start"),
        ("crash", json!({}), "die", "failed: server \"bad\": it ended (exit status: 3"),
        ("half line", json!({}), "half_line", "failed: server \"bad\": the server's answer is not"),
        ("half, then dead", json!({}), "half_line_and_die", "failed: server \"bad\": it ended ("),
        ("100 MB", json!({}), "big_result", "failed: server \"bad\": the server's answer is over"),
        (
            "no end of line",
            json!({}),
            "long_line",
            "failed: server \"bad\": the server's answer is",
        ),
        ("endless pages", json!({"pages": "endless"}), "tool_99", "{}"),
        ("surrogate", json!({}), "lone_surrogate", "\"cut \u{fffd} here\""),
        ("no UTF-8", json!({}), "bad_utf8", "\"caf\u{fffd}\""),
        ("nesting", json!({}), "deep", "failed: server \"bad\": the server's answer is not valid"),
        ("notifications", json!({}), "notification_flood", "{}"),
        ("progress", json!({}), "progress_flood", "{}"),
        ("requests", json!({}), "request_flood", "{}"),
        ("pings", json!({}), "ping_flood", "{}"),
        ("twice", json!({}), "twice", "\"first\""),
        ("for another", json!({}), "for_another", "{}"),
        ("closed output", json!({}), "close_output", "failed: server \"bad\": it ended ("),
        ("stderr", json!({"stderr_mb": 100}), "echo", "{}"),
        ("many tools", json!({"many": 6_000}), "echo", "{}"),
        ("a long text", json!({"description_mb": 9}), "echo", "{}"),
        (
            "too long a list",
            json!({"description_mb": 11}),
            "echo",
            "failed: server \"bad\": it did",
        ),
    ];
    for (what, mut plan, tool, expected) in cases {
        plan["tools"] = json!(["echo", tool]);
        let good = scripted(&json!({}));
        let mut client = Client::start(&json!({"bad": scripted(&plan), "good": good}));
        assert_eq!(outcome(&mut client, "good", "echo"), "{}", "{what}");
        let before = memory_kib(client.child.id(), "VmRSS");
        let actual = outcome(&mut client, "bad", tool);
        assert!(actual.starts_with(expected), "{what}: {actual}");
        assert_eq!(outcome(&mut client, "good", "echo"), "{}", "{what}");
        // The most there ever was, also while it happened.
        let grown = memory_kib(client.child.id(), "VmHWM").saturating_sub(before);
        assert!(grown <= GROWTH_KIB, "{what}: codexec grew by {grown} KiB");
    }
}

/// While one hangs, the other is asked and answers; the one that hangs ends with its execution.
#[test]
fn up_9_a_server_that_hangs_delays_nobody() {
    let hung_start = scripted(&json!({"start": "hang"}));
    let servers = json!({
        "bad": scripted(&json!({})),
        "slow": hung_start,
        "good": scripted(&json!({})),
    });
    let mut client = Client::start(&servers);
    let mut hung = Vec::new();
    for server in ["bad", "slow"] {
        let call = json!({"code": calling(server, "hang"), "timeout_ms": 10_000});
        hung.push(client.send_call("execute_code", &call));
    }
    assert!(within(PATIENCE, || health(&mut client, "bad")["in_flight"] == 1));
    for n in 0..20 {
        let code = format!("return await tools.good.echo({{ n: {n} }})");
        assert_eq!(client.run(&code).fine(), format!("{{\"n\":{n}}}"));
    }
    for id in hung {
        assert!(client.others.iter().all(|message| message["id"] != id), "it has not hung");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}}));
    }
    // It heard of it, and works for others.
    assert!(within(PATIENCE, || health(&mut client, "bad")["in_flight"].is_null()));
    let heard = || outcome(&mut client, "bad", "cancelled") != "[]";
    assert!(within(PATIENCE, heard));
}

/// Counted by what the upstream received.
#[test]
fn up_9_five_failures_open_the_breaker_and_one_probe_goes_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let received = |log: &Path| std::fs::read_to_string(log).unwrap_or_default().lines().count();
    let plan = json!({"tools": ["flaky", "echo"], "flaky": 5, "log": log});
    let servers = json!({"bad": scripted(&plan), "good": scripted(&json!({}))});
    let mut client = Client::with(&servers, |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        keep_settings(&home, "[gateway]\ntimeout-ms = 1500\n");
    });
    assert_eq!(client.run("return Object.keys(tools.bad).length").fine(), "2");
    for failures in 1..=5 {
        let hung = outcome(&mut client, "bad", "flaky");
        assert!(hung.starts_with("failed: server \"bad\": no answer within 1.5 s"), "{hung}");
        let is_counted = || health(&mut client, "bad")["failures"] == failures;
        assert!(within(PATIENCE, is_counted), "{}", health(&mut client, "bad"));
    }
    let refused = outcome(&mut client, "bad", "echo");
    let reason = "failed: server \"bad\": circuit open: it failed 5 times in a row, last error: no answer within";
    assert!(refused.starts_with(reason), "{refused}");
    assert!(refused.contains("; try again in "), "{refused}");
    assert_eq!(health(&mut client, "bad")["breaker"], "open");
    assert_eq!(received(&log), 5);
    assert_eq!(outcome(&mut client, "good", "echo"), "{}");

    assert!(within(PATIENCE, || health(&mut client, "bad")["retry_in_s"] == 0));
    let ten = "const calls = Array.from({ length: 10 }, () => tools.bad.flaky({}));\n\
               const ended = await Promise.allSettled(calls);\n\
               return ended.filter((one) => one.status === 'fulfilled').length";
    // On a busy machine the probe may be answered before the last of the ten is looked at; whoever
    // was refused has not reached the server. That one probe goes at a time, the breaker's own
    // tests show.
    let answered: usize = client.run(ten).fine().parse().expect("a number");
    assert!(answered >= 1);
    assert_eq!(received(&log), 5 + answered, "only what was let through was received");
    assert_eq!(outcome(&mut client, "bad", "echo"), "{}");
    assert_eq!(health(&mut client, "bad")["breaker"], Value::Null);
}

#[test]
fn up_9_a_server_that_dies_in_a_call_is_started_again() {
    let mut client = Client::start(&json!({"bad": scripted(&json!({}))}));
    let both = "const ended = await Promise.allSettled([tools.bad.hang({}), tools.bad.die({})]);\n\
                return ended.map((one) => one.reason.message).join('\\n')";
    let why = "server \"bad\": it ended (exit status: 3; stderr: out of cheese)";
    assert_eq!(client.run(both).fine(), format!("{why}\n{why}"));
    assert_eq!(outcome(&mut client, "bad", "echo"), "{}");
    let health = health(&mut client, "bad");
    assert_eq!((&health["restarts"], &health["failures"]), (&json!(1), &json!(2)));
}

#[test]
fn up_9_a_schema_that_changes_costs_only_its_tool() {
    let plan = json!({"tools": ["echo", "new_schema", "lone_surrogate"]});
    let mut client = Client::start(&json!({"bad": scripted(&plan)}));
    assert_eq!(outcome(&mut client, "bad", "echo"), "{}");
    assert_eq!(outcome(&mut client, "bad", "new_schema"), "{}");
    let is_refused = || outcome(&mut client, "bad", "echo").contains("its definition has changed");
    assert!(within(PATIENCE, is_refused));
    assert!(outcome(&mut client, "bad", "lone_surrogate").contains("cut"));
}

/// THREAT[UP-10]: seven calls of one guest that it does not wait for close the server to nobody.
#[test]
fn up_10_a_guest_without_patience_does_not_make_a_server_look_dead() {
    let mut client = Client::start(&json!({"bad": scripted(&json!({}))}));
    assert_eq!(outcome(&mut client, "bad", "echo"), "{}");
    let code = "await Promise.all(Array.from({ length: 7 }, () => tools.bad.hang({})))";
    let call = json!({"code": code, "timeout_ms": 1_300});
    for _ in 0..2 {
        client.call("execute_code", &call).failed();
    }
    assert_eq!(outcome(&mut client, "bad", "echo"), "{}");
    let health = health(&mut client, "bad");
    assert_eq!((&health["breaker"], &health["failures"]), (&Value::Null, &Value::Null), "{health}");
}

/// THREAT[UP-11]: many guests send much to a server that does not read.
#[test]
fn up_11_what_waits_for_a_server_that_does_not_read_is_bounded_over_all_callers() {
    let plan = json!({"tools": ["echo", "deaf"]});
    let mut client = Client::start(&json!({"bad": scripted(&plan)}));
    outcome(&mut client, "bad", "deaf");
    let before = memory_kib(client.child.id(), "VmRSS");
    let code = "const text = 'x'.repeat(1 << 20), l = new Array(20000).fill('y');\n\
        await Promise.allSettled(Array.from({ length: 64 }, (_, n) => \
            tools.bad.echo(n % 2 ? { text } : { l }))); while (true) await tools.bad.echo({ text }).catch(() => 0)";
    let call = json!({"code": code, "timeout_ms": 4_000});
    let guests: Vec<u64> = (0..4).map(|_| client.send_call("execute_code", &call)).collect();
    for id in guests {
        client.wait_call(id).failed();
    }
    let grown = memory_kib(client.child.id(), "VmHWM").saturating_sub(before);
    assert!(grown <= GROWTH_KIB, "codexec grew by {grown} KiB");
}
