//! A large library. `cargo test -p codexec-scripts many -- --nocapture` prints the times.

use std::time::Instant;

use super::*;

const WORDS: [&str; 20] = [
    "parse", "excel", "report", "clean", "csv", "backup", "database", "mail", "fetch", "invoice",
    "chart", "sum", "daily", "archive", "rename", "photos", "resize", "sync", "calendar", "notes",
];

fn nth(number: usize) -> ScriptDraft {
    let word = |step: usize| WORDS[(number / step) % WORDS.len()];
    ScriptDraft {
        description: format!(
            "{} the {} of every {} and tell what was found",
            word(1),
            word(20),
            word(7)
        ),
        code: format!(
            "import sys\n\ndef {}_{}(path):\n    return open(path).read()\n",
            word(1),
            word(3)
        ),
        tags: vec![word(11).to_owned(), word(13).to_owned()],
        ..draft(&format!("{}-{}-{number}", word(1), word(20)), "1")
    }
}

#[tokio::test]
async fn a_thousand_scripts_are_saved_and_each_is_found() {
    const MANY: usize = 1_000;
    const SEARCHES: usize = 100;
    let kit = Kit::new();
    let library = Library::at(kit.path(""));
    let start = Instant::now();
    for number in 0..MANY {
        library.save(nth(number)).await.unwrap();
    }
    println!("{MANY} saves: {:?}", start.elapsed());
    let index_bytes = kit.text("index.json").len();
    println!("index.json: {index_bytes} bytes");

    let fresh = Library::at(kit.path(""));
    let start = Instant::now();
    assert_eq!(fresh.list(all()).await.unwrap().total, MANY);
    println!("first scan of another server: {:?}", start.elapsed());

    let mut longest = Duration::ZERO;
    let start = Instant::now();
    for number in (0..MANY).step_by(MANY / SEARCHES) {
        let before = Instant::now();
        let hits = fresh.search(&nth(number).name, 10).await.unwrap();
        longest = longest.max(before.elapsed());
        assert_eq!(hits[0].meta.name, nth(number).name);
    }
    println!("a search: {:?}, the longest {longest:?}", start.elapsed() / SEARCHES as u32);

    let start = Instant::now();
    for _ in 0..SEARCHES {
        let index = fresh.index.lock().unwrap();
        index.search("parse the excel report of february", 10);
    }
    println!("a search in memory: {:?}", start.elapsed() / SEARCHES as u32);

    let start = Instant::now();
    kit.library.search("excel", 10).await.unwrap();
    let first = start.elapsed();
    let start = Instant::now();
    kit.library.search("excel", 10).await.unwrap();
    println!("a search that scans all files: {:?}, the first {first:?}", start.elapsed());

    let start = Instant::now();
    library.record_run(&nth(0).name, SystemTime::UNIX_EPOCH, true).await.unwrap();
    println!("recording a run: {:?}", start.elapsed());
}

#[tokio::test]
async fn a_full_library_refuses_new_scripts_and_keeps_the_old_ones() {
    const MOST: usize = 20;
    let mut kit = Kit::new();
    let limits = LibraryLimits { scripts: MOST, ..ALWAYS_SCAN };
    kit.library = Library::with_limits(kit.path(""), limits);
    for number in 0..MOST {
        kit.save(&format!("s{number}"), "1").await;
    }
    let err = kit.library.save(draft("one-more", "1")).await.unwrap_err();
    assert_eq!(
        err.to_string(),
        "the library is full: 20 scripts; delete one with delete_script first"
    );
    assert_eq!(kit.save("s1", "2").await.version, 2);
    kit.library.delete("s1").await.unwrap();
    kit.save("one-more", "1").await;
    kit.put("zzz/script.sh", "ls");
    let (names, notes) = kit.list().await;
    assert_eq!((names.len(), names.contains(&"zzz".to_owned())), (MOST, false));
    assert_eq!(notes, ["only the first 20 scripts are read; delete some"]);
}

#[tokio::test]
async fn ord_4_the_total_size_of_all_scripts_and_versions_is_limited() {
    let mut kit = Kit::new();
    let limits = LibraryLimits { bytes: 1 << 20, ..ALWAYS_SCAN };
    kit.library = Library::with_limits(kit.path(""), limits);
    let code = |number: usize| format!("{number} {}", "x".repeat(100_000));
    let mut saved = 0;
    let err = loop {
        // Two names, so that both scripts and versions count.
        match kit.library.save(draft(&format!("s{}", saved % 2), &code(saved))).await {
            Ok(_) => saved += 1,
            Err(err) => break err,
        }
        assert!(saved < 100, "the size is not limited");
    };
    assert_eq!(err.code(), "SCRIPT_LIBRARY_FULL");
    assert!((4..10).contains(&saved), "{saved}");
    kit.library.delete("s1").await.unwrap();
    kit.save("s2", "1").await;
}
