//! Measures how long it takes to write records and to search them.
//!
//! `cargo bench -p codexec-store` measures on the disk of the temporary folder; `-- --dir PATH`
//! on another one. `-- --executions N` searches N executions instead of 100,000. `-- --test` is a
//! quick smoke test.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic"
)]

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use codexec_store::{
    CallEnd, CallStart, CoarseStatus, Durability, ExecutionEnd, ExecutionStart, LogQuery,
    ReadScope, Retention, Store, mask,
};
use codexec_types::{
    AdmissionRequest, Admitted, Edge, ExecutionId, FileChanges, Grants, GuestOutput, Identity,
    Json, Language, Limits, Outcome, Policy, Principal, RecordEnding, RequestOrigin, ToolFilter,
    WorkingDirPolicy,
};

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        Some(args.get(at + 1).unwrap_or_else(|| panic!("{name} takes a value")).clone())
    };
    let dir = value("--dir").map_or_else(std::env::temp_dir, PathBuf::from);
    let is_smoke = args.iter().any(|arg| arg == "--test");
    let all = if is_smoke { 200 } else { 100_000 };
    let executions = value("--executions").map_or(all, |n| n.parse().unwrap());
    let some = |count: u128| if is_smoke { count / 100 } else { count };
    measure_masking();
    measure_appends(&dir, Durability::Process, 1, some(5_000)).await;
    measure_appends(&dir, Durability::Process, 32, some(20_000)).await;
    measure_appends(&dir, Durability::Power, 1, some(500)).await;
    measure_appends(&dir, Durability::Power, 32, some(5_000)).await;
    measure_calls(&dir, u32::try_from(some(5_000)).unwrap()).await;
    measure_searches(&dir, executions).await;
}

fn measure_masking() {
    let line = "df = pd.read_csv('data.csv').groupby('category').agg({'value': 'mean'})\n";
    for bytes in [100, 1_000, 64_000] {
        let text: String = line.chars().cycle().take(bytes).collect();
        let took = median(201, || {
            let started = Instant::now();
            std::hint::black_box(mask(std::hint::black_box(&text)));
            started.elapsed()
        });
        println!("mask  {bytes:>6} bytes with nothing to mask   {took:>10.2?}");
    }
}

/// Measures concurrent clients, each of which writes one record after another.
async fn measure_appends(dir: &Path, durability: Durability, clients: u128, count: u128) {
    let home = tempfile::tempdir_in(dir).unwrap();
    let store = Store::open(&home.path().join("codexec.db"), durability).await.unwrap();
    let started = Instant::now();
    let tasks = (0..clients).map(|client| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut took = Vec::new();
            for n in 0..count / clients {
                let begun = Instant::now();
                record(&store, client * count + n, "print('hello')").await;
                took.push(begun.elapsed());
            }
            took
        })
    });
    let mut took = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        took.extend(task.await.unwrap());
    }
    let all = started.elapsed();
    store.flush().await.unwrap();
    let logged = started.elapsed();
    took.sort();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    println!(
        "append {durability:?} x{clients:<2}  p50 {:>9.1?}  p99 {:>9.1?}  {:>7.0}/s  in the log files \
         {:.0?} later",
        at(50),
        at(99),
        took.len() as f64 / all.as_secs_f64(),
        logged - all,
    );
}

async fn measure_calls(dir: &Path, count: u32) {
    let home = tempfile::tempdir_in(dir).unwrap();
    let store = Store::open(&home.path().join("codexec.db"), Durability::Process).await.unwrap();
    let id = ExecutionId::from_bits(1);
    begin(&store, &id, "1").await;
    let call = CallStart {
        server: "github",
        tool: "get_issue",
        args: r#"{"number":17}"#,
        kept_bytes: 1 << 20,
        after: std::time::Duration::ZERO,
    };
    let end = CallEnd { error: None, duration: Duration::from_millis(3), result_bytes: 900 };
    let mut took = Vec::new();
    for number in 0..count {
        let started = Instant::now();
        store.begin_call(&id, number, &call).await.unwrap();
        store.finish_call(&id, number, end).await;
        took.push(started.elapsed());
    }
    took.sort();
    println!(
        "call   begin and end             p50 {:>9.1?}  p99 {:>9.1?}",
        took[took.len() / 2],
        took[took.len() * 99 / 100]
    );
}

async fn measure_searches(dir: &Path, executions: u128) {
    let home = tempfile::tempdir_in(dir).unwrap();
    let path = home.path().join("codexec.db");
    let store = Store::open(&path, Durability::Process).await.unwrap();
    let started = Instant::now();
    let before = resident_mib();
    for n in 0..executions {
        let code = format!(
            "import pandas as pd\ndf{} = pd.read_csv('data-{n}.csv')\nprint(df.describe())  # job{}",
            n % 97,
            n % 1_000
        );
        record(&store, n, &code).await;
    }
    store.flush().await.unwrap();
    println!(
        "search {executions} executions written in {:.1?}, {} MiB, resident {before} -> {} MiB",
        started.elapsed(),
        mib(&path),
        resident_mib()
    );
    let any = LogQuery { limit: 20, ..LogQuery::default() };
    let text = |text: &str| LogQuery { text: Some(text.to_owned()), ..any.clone() };
    let first = Instant::now();
    store.search(&text("nothing"), &ReadScope::Of(Identity::LocalUser)).await.unwrap();
    println!("search first, which updates the index         {:.1?}", first.elapsed());
    let now = SystemTime::now();
    for (name, query) in [
        ("a word in all", text("pandas")),
        ("a word in 1 of 1,000", text("job123")),
        ("a word in one", text("77777")),
        ("the beginning of words", text("des")),
        ("three words", text("pandas read_csv job12")),
        (
            "a word in all, of one kind",
            LogQuery { status: Some(CoarseStatus::Success), ..text("pandas") },
        ),
        (
            "a word in all, of a time",
            LogQuery { since: Some(now - Duration::from_secs(60)), ..text("pandas") },
        ),
        ("a word in all, page 4,000", LogQuery { offset: 80_000, ..text("pandas") }),
        ("no word", any.clone()),
        ("no word, of one kind", LogQuery { status: Some(CoarseStatus::Failed), ..any.clone() }),
    ] {
        let mut took = Vec::new();
        let mut total = 0;
        for _ in 0..21 {
            let started = Instant::now();
            total = store.search(&query, &ReadScope::Of(Identity::LocalUser)).await.unwrap().total;
            took.push(started.elapsed());
        }
        took.sort();
        println!("search {name:<28} {total:>7}   p50 {:>9.2?}  max {:>9.2?}", took[10], took[20]);
    }
    println!("search resident {} MiB", resident_mib());
    let started = Instant::now();
    let all = Retention { success: Duration::ZERO, ..Retention::default() };
    let removed =
        store.apply_retention(&all, SystemTime::now() + Duration::from_secs(1)).await.unwrap();
    println!("retain {} executions in {:.1?}", removed.executions, started.elapsed());
}

async fn record(store: &Store, bits: u128, code: &str) {
    let id = ExecutionId::from_bits(bits);
    begin(store, &id, code).await;
    let outcome = Outcome::Returned(Json::null());
    let output = GuestOutput::new("       col1\ncount  100.0\nmean    50.5\n".to_owned(), vec![]);
    let finish = ExecutionEnd {
        ending: RecordEnding::Outcome(&outcome),
        output: &output,
        value: Some("42"),
        tool_calls: 0,
        duration: Duration::from_millis(7),
        posture: "user,pid,mount,net,seccomp,landlock",
        peak_memory_bytes: Some(1 << 20),
        cpu: Some(Duration::from_micros(900)),
        changes: &FileChanges::default(),
        limits_met: &[],
        images: 0,
    };
    store.finish(&id, finish).await.unwrap();
}

async fn begin(store: &Store, id: &ExecutionId, code: &str) {
    let begin = ExecutionStart {
        id,
        admitted: &admitted(code),
        started: SystemTime::now(),
        session: None,
        script: None,
        context: &RequestOrigin::default(),
        principal: &Principal::new(Identity::LocalUser, Edge::Stdio),
    };
    store.begin(begin).await.unwrap();
}

fn admitted(code: &str) -> Admitted {
    let policy = Policy {
        languages: Language::ALL.to_vec(),
        code_bytes: 1 << 20,
        input_bytes: 1 << 20,
        limits: Limits::DEFAULT,
        max_wall: Duration::from_secs(300),
        tools: ToolFilter::all(),
        grants: Grants::default(),
        files: WorkingDirPolicy::default(),
    };
    let request = AdmissionRequest::new(Language::Python, code.to_owned());
    policy.admit(request, &[], None).unwrap()
}

fn median(rounds: usize, mut once: impl FnMut() -> Duration) -> Duration {
    let mut took: Vec<Duration> = (0..rounds).map(|_| once()).collect();
    took.sort();
    took[rounds / 2]
}

fn mib(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len() >> 20
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}
