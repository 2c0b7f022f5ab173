//! Measures search quality and speed.
//!
//! `cargo bench -p codexec-tool-search --bench search` measures the test catalogue, and the time over a
//! thousand generated tools. `-- --corpus PATH --queries FILE [--misses]` measures other sets: PATH
//! is a file of tools that name their server, or a folder with one file per server.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark may fall over"
)]

#[path = "../tests/recall/measure.rs"]
mod measure;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use measure::{Measured, ToolFinder, definitions, measure, queries};
use serde_json::{Value, json};

const ROUNDS: usize = 21;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        Some(PathBuf::from(args.get(at + 1).unwrap_or_else(|| panic!("{name} takes a path"))))
    };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recall");
    let corpus = value("--corpus").unwrap_or_else(|| own.join("catalogue.json"));
    let asked = queries(&value("--queries").unwrap_or_else(|| own.join("queries.jsonl")));
    let tools = definitions(&corpus);
    let finder = finder(&tools);
    let measured = measure(&finder, &asked);
    println!("{} tools, {} queries", tools.len(), asked.len());
    print(&measured);
    if args.iter().any(|arg| arg == "--misses") {
        println!("not among the first five:\n  {}", measured.misses.join("\n  "));
    }
    time(&format!("one query over {} tools", tools.len()), || {
        for query in &asked {
            std::hint::black_box(finder.find(&query.text, 10));
        }
        asked.len()
    });
    let many = thousand(&tools);
    time("reading and indexing 1,000 tools", || {
        std::hint::black_box(self::finder(&many));
        1
    });
    let finder = self::finder(&many);
    time("one query over 1,000 tools", || {
        for query in &asked {
            std::hint::black_box(finder.find(&query.text, 10));
        }
        asked.len()
    });
}

fn finder(tools: &[(String, Value)]) -> ToolFinder {
    ToolFinder::new(tools)
}

fn print(measured: &Measured) {
    let row = |[one, five, ten]: [f64; 3]| format!("{one:.3}  {five:.3}  {ten:.3}");
    println!("                          @1     @5     @10");
    println!("an expected tool found  {}", row(measured.found));
    println!("recall of all expected  {}", row(measured.recall));
    println!("MRR {:.3}, nDCG@10 {:.3}", measured.mean_reciprocal_rank, measured.ndcg_at_10);
}

/// Prints the median time per item; `work` returns its number of items.
fn time(what: &str, mut work: impl FnMut() -> usize) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            let done = work();
            begin.elapsed() / u32::try_from(done).expect("not so many")
        })
        .collect();
    times.sort();
    println!("{what}: {:.3} ms", times[ROUNDS / 2].as_secs_f64() * 1e3);
}

/// Repeats these tools up to a thousand, with texts of realistic length.
fn thousand(tools: &[(String, Value)]) -> Vec<(String, Value)> {
    let text = |tool: &Value| tool["description"].as_str().unwrap_or_default().to_owned();
    (0..1_000)
        .map(|number| {
            let (server, tool) = &tools[number % tools.len()];
            let (_, other) = &tools[(number * 7 + 3) % tools.len()];
            let name = format!("{}_{number}", tool["name"].as_str().unwrap_or_default());
            let description = format!("{} {} {0} {1}", text(tool), text(other));
            let properties: Value = ["path", "query", "limit", "fields", "owner"]
                .map(|name| {
                    (name.to_owned(), json!({"type": "string", "description": text(other)}))
                })
                .into_iter()
                .collect::<serde_json::Map<_, _>>()
                .into();
            let schema = json!({"type": "object", "properties": properties});
            let tool = json!({"name": name, "description": description, "inputSchema": schema});
            (server.clone(), tool)
        })
        .collect()
}
