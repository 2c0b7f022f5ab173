//! Measures how long it takes to save a thousand scripts, and to search them.
//!
//! `cargo bench -p codexec-scripts`; with `-- --test`, a smoke test with twenty scripts.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark may panic"
)]

use std::time::{Duration, Instant, SystemTime};

use codexec_scripts::{Library, ScriptDraft};
use codexec_types::Language;

const SUBJECTS: [&str; 10] = [
    "invoice",
    "weather",
    "calendar",
    "backup",
    "excel",
    "image",
    "invoice mail",
    "log file",
    "price",
    "customer",
];
const VERBS: [&str; 5] = ["parse", "download", "summarise", "compare", "clean"];

#[tokio::main]
async fn main() {
    let is_smoke = std::env::args().any(|arg| arg == "--test");
    let count = if is_smoke { 20 } else { 1_000 };
    let folder = tempfile::tempdir().unwrap();
    let library = Library::at(folder.path().join("scripts"));
    let mut took = Vec::new();
    for number in 0..count {
        let begun = Instant::now();
        library.save(draft(number)).await.unwrap();
        took.push(begun.elapsed());
    }
    report(&format!("save, {count} one after another"), took);
    let begun = Instant::now();
    let fresh = Library::at(folder.path().join("scripts"));
    fresh.search("excel", 10).await.unwrap();
    println!("{:<44} {:>9.2?}", "first search of a new process", begun.elapsed());
    for query in ["excel", "parse excel reports", "cal", "customer price compare list report rows"]
    {
        let mut took = Vec::new();
        for _ in 0..200 {
            let begun = Instant::now();
            assert!(!library.search(query, 10).await.unwrap().is_empty());
            took.push(begun.elapsed());
        }
        report(&format!("search {query:?}"), took);
    }
    let mut took = Vec::new();
    for number in 0..count.min(100) {
        let begun = Instant::now();
        library.record_run(&name(number), SystemTime::now(), true).await.unwrap();
        took.push(begun.elapsed());
    }
    report("record a run", took);
}

fn draft(number: usize) -> ScriptDraft {
    let (subject, verb) = (SUBJECTS[number % 10], VERBS[number % 5]);
    ScriptDraft {
        name: name(number),
        description: format!(
            "Lets you {verb} {subject} reports and list the rows, number {number}"
        ),
        language: Language::Python,
        code: format!(
            "import csv, sys\nrows = list(csv.reader(open(sys.argv[1])))\nprint(len(rows), {number})\n"
        ),
        tags: vec![subject.replace(' ', "-"), verb.to_owned()],
        packages: Vec::new(),
        parameters: None,
        source_execution_id: None,
        saved_by: None,
        expose: false,
    }
}

fn name(number: usize) -> String {
    format!("{}-{}-{number}", VERBS[number % 5], SUBJECTS[number % 10].replace(' ', "-"))
}

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100];
    println!("{what:<44} p50 {:>9.2?}  p99 {:>9.2?}  max {:>9.2?}", at(50), at(99), at(100));
}
