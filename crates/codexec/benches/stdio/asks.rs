//! Latency for other clients while guests send the most expensive asks.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::Client;
use crate::{Bench, median, ms, percentile, warm};

/// How long the guests run, in executions of five seconds each.
const MINUTE: Duration = Duration::from_secs(60);
const TURN_MS: u64 = 5_000;
/// More executions than may run and wait at the same time.
const FLOOD: usize = 400;

const SAVE_SLOW: &str = "await scripts.save('slow', '1', {language: 'javascript', parameters: \
    {type: 'object', properties: {l: {allOf: new Array(2600).fill({items: {minimum: 0}})}}}})";

const EXPENSIVE_ASKS: [&str; 8] = [
    "const l = new Array(90000).fill(1); while (true) await scripts.run('slow', {input: {l}}).catch(() => 0)",
    "const words = Array.from({length: 200}, (_, n) => 'w' + n); while (true) await Promise.all(\
        Array.from({length: 60}, () => discoverMCPTools(words).catch(() => 0)))",
    "const words = new Array(500000).fill('a'); while (true) await discoverMCPTools(words).catch(() => 0)",
    "const text = 'x'.repeat(4 << 20); while (true) await callMCPTool('mcp__a__b', {text}).catch(() => 0)",
    "const l = new Array(90000).fill([1]); while (true) await callMCPTool('mcp__a__b', {l}).catch(() => 0)",
    "while (true) await Promise.all(Array.from({length: 60}, () => logs.search().catch(() => 0)))",
    "while (true) progress('x'); ",
    "const text = 'y'.repeat(3 << 20); while (true) await scripts.save('s', text).catch(() => 0)",
];

impl Bench {
    pub(crate) fn asks(&mut self) {
        let mut client = Client::start(&json!({}));
        warm(&mut client);
        client.run(SAVE_SLOW).fine();
        let begun = Instant::now();
        let length = if self.rounds > 2 { MINUTE } else { Duration::from_secs(1) };
        let send = |client: &mut Client, code: &str| {
            client.send_call("execute_code", &json!({"code": code, "timeout_ms": TURN_MS}))
        };
        let mut guests: Vec<(usize, u64)> = (0..EXPENSIVE_ASKS.len())
            .map(|at| (at, send(&mut client, EXPENSIVE_ASKS[at])))
            .collect();
        let mut pings = Vec::new();
        while begun.elapsed() < length {
            pings.push(client.ping());
            for (at, id) in &mut guests {
                if client.others.iter().any(|message| message["id"] == *id) {
                    client.wait_call(*id);
                    *id = send(&mut client, EXPENSIVE_ASKS[*at]);
                }
            }
        }
        pings.sort();
        let note = format!("median {:.2} ms, {} pings", ms(median(&pings)), pings.len());
        let p99 = ms(percentile(&pings, 99));
        self.push_row(
            "`ping` while 8 guests send expensive asks, p99",
            p99,
            "ms",
            Some(50.0),
            note,
        );
    }

    pub(crate) fn refusals(&mut self) {
        let mut client = Client::start(&json!({}));
        warm(&mut client);
        let call = json!({"code": "while (true) {}", "timeout_ms": 1_000});
        let flood: Vec<u64> = (0..FLOOD).map(|_| client.send_call("execute_code", &call)).collect();
        let mut refused: Vec<Duration> = (0..self.rounds.min(50))
            .map(|_| {
                let begun = Instant::now();
                let said = client.call("execute_code", &call).failed();
                assert!(said.starts_with("BUSY"), "{said}");
                begun.elapsed()
            })
            .collect();
        refused.sort();
        let note = format!("median {:.2} ms", ms(median(&refused)));
        let p99 = ms(percentile(&refused, 99));
        self.push_row(
            "refusal of an execution when all workers are busy",
            p99,
            "ms",
            Some(50.0),
            note,
        );
        drop(flood);
    }
}
