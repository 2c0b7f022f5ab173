//! A full disk.

use std::{path::Path, process::Command};

use codexec_types::{ExecutionId, GuestOutput, Outcome, RecordEnding};

use super::*;
use crate::{CallEnd, CallStart, ExecutionEnd, ExecutionStatus, store::tests::logs};

const SMALL: &str = "CODEXEC_STORE_TEST_SMALL_DISK";

#[tokio::test]
async fn a_full_database_is_an_error_until_it_can_grow_again() {
    let (store, _home) = store().await;
    let pages: u32 =
        sqlite(&store).queue(|c| c.query_row("PRAGMA page_count", [], |r| r.get(0))).await.unwrap();
    sqlite(&store).queue(max_pages(pages + 2)).await.unwrap();
    let big = "1;".repeat(100_000);
    let mut begun = Vec::new();
    for n in 0..8 {
        let (store, code) = (store.clone(), big.clone());
        begun.push(tokio::spawn(async move {
            begin(&store, &ExecutionId::from_bits(n), &code, at(0)).await
        }));
    }
    for begin in begun {
        let code = begin.await.unwrap().unwrap_err().code();
        // Writes in the same transaction fail with `store_write`, because it is rolled back.
        assert!(["store_full", "store_write"].contains(&code), "{code}");
    }
    assert_eq!(
        store.count_executions(&ALL).await.unwrap(),
        ExecutionCounts { running: 0, total: 0 }
    );
    sqlite(&store).queue(max_pages(1_000_000)).await.unwrap();
    begin(&store, &ExecutionId::from_bits(1), &big, at(0)).await.unwrap();
}

#[tokio::test]
async fn an_end_that_cannot_be_written_is_retried() {
    let (store, home) = store().await;
    let id = ExecutionId::from_bits(1);
    begin(&store, &id, "1", at(0)).await.unwrap();
    let call = CallStart {
        server: "db",
        tool: "query",
        args: "{}",
        kept_bytes: 1 << 20,
        after: std::time::Duration::ZERO,
    };
    store.begin_call(&id, 1, &call).await.unwrap();
    let end = CallEnd { error: None, duration: Duration::ZERO, result_bytes: 1 };
    store.finish_call(&id, 1, end).await;
    let pages: u32 =
        sqlite(&store).queue(|c| c.query_row("PRAGMA page_count", [], |r| r.get(0))).await.unwrap();
    sqlite(&store).queue(max_pages(pages)).await.unwrap();
    let long = GuestOutput::new("x".repeat(500_000), vec![]);
    let finish =
        ExecutionEnd { output: &long, ..finish(RecordEnding::Outcome(&Outcome::Cancelled)) };
    assert_eq!(store.finish(&id, finish).await.unwrap_err().code(), "store_full");
    let other = ExecutionId::from_bits(2);
    let refused = begin(&store, &other, "1", at(0)).await.unwrap_err();
    assert_eq!(refused.code(), "store_full", "nothing is begun while an end is pending");

    sqlite(&store).queue(max_pages(1_000_000)).await.unwrap();
    begin(&store, &other, "1", at(0)).await.unwrap();
    let stored = store.get(&id, &ALL).await.unwrap().unwrap();
    assert_eq!(stored.summary.status, ExecutionStatus::Cancelled);
    assert_eq!(stored.written.unwrap().text().len(), 500_000);
    assert_eq!(stored.calls[0].result_bytes, Some(1));
    store.flush().await.unwrap();
    assert_eq!(logs::lines(&home, "executions-1970-01-01.jsonl").len(), 1);
}

/// Runs on a small tmpfs in a new mount namespace, which needs no root.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a mount namespace needs a separate process")]
async fn a_full_disk_refuses_new_executions_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let mounted =
        format!("mount -t tmpfs -o size=88m tmpfs {0} && exec \"$@\"", folder.path().display());
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &mounted, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::tests::full::child_fills_its_disk", "--nocapture"])
        .env(SMALL, folder.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !stdout.contains("child is done") {
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_missing = errors.contains("Operation not permitted");
        assert!(
            is_missing && std::env::var_os("CODEXEC_REQUIRE_ALL").is_none(),
            "{stdout}\n{errors}"
        );
        eprintln!("SKIPPED: user namespaces are not available");
    }
}

/// The child process of the test above. Does nothing unless that test started it.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "how the test's two processes find each other")]
async fn child_fills_its_disk() {
    let Some(home) = std::env::var_os(SMALL) else { return };
    let home = Path::new(&home);
    let path = home.join("codexec.db");
    let others = home.join("others");
    fs::write(&others, vec![0; 64 << 20]).unwrap();
    let store = Store::open(&path, Durability::Process).await.unwrap();
    let output = GuestOutput::new("x".repeat(300_000), vec![]);
    let outcome = Outcome::Cancelled;
    let finish = || ExecutionEnd { output: &output, ..finish(RecordEnding::Outcome(&outcome)) };
    // These run while the disk fills up.
    let running: Vec<ExecutionId> = (1_000..1_020).map(ExecutionId::from_bits).collect();
    for id in &running {
        begin(&store, id, "1", at(0)).await.unwrap();
    }
    let mut acknowledged = Vec::new();
    let refusal = loop {
        let id = ExecutionId::from_bits(acknowledged.len() as u128);
        if let Err(error) = begin(&store, &id, "1", at(0)).await {
            break error;
        }
        match store.finish(&id, finish()).await {
            Ok(()) => acknowledged.push(id),
            Err(error) => break error,
        }
    };
    assert_eq!(refusal.code(), "store_full");
    let StoreError::Full { free_bytes, needed_bytes, .. } = refusal else { panic!("{refusal}") };
    assert!(free_bytes < needed_bytes, "{free_bytes} of {needed_bytes}");
    // Fills the disk completely.
    let ballast = home.join("ballast");
    let mut filling = fs::File::create(&ballast).unwrap();
    while std::io::Write::write_all(&mut filling, &[0; 4096]).is_ok() {}
    drop(filling);
    let mut failed = 0;
    for id in &running {
        failed += usize::from(store.finish(id, finish()).await.is_err());
    }
    assert!(failed > 0, "the disk is full");
    let begun = begin(&store, &ExecutionId::from_bits(5_000), "1", at(0)).await;
    assert_eq!(begun.unwrap_err().code(), "store_full");

    // Frees space again.
    fs::remove_file(&ballast).unwrap();
    fs::remove_file(&others).unwrap();
    let new = ExecutionId::from_bits(6_000);
    begin(&store, &new, "1", at(0)).await.unwrap();
    store.finish(&new, finish()).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(store.count_executions(&ALL).await.unwrap().running, 0, "pending ends are written");
    let text = fs::read_to_string(home.join("logs/executions-1970-01-01.jsonl")).unwrap();
    let mut logged = 0;
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
        logged += 1;
    }
    let total = store.count_executions(&ALL).await.unwrap().total;
    assert_eq!(logged, total, "each once");
    for id in acknowledged.iter().chain(&running).chain([&new]) {
        assert_eq!(
            store.get(id, &ALL).await.unwrap().unwrap().summary.status,
            ExecutionStatus::Cancelled
        );
    }
    let check: String = sqlite(&store)
        .queue(|c| c.query_row("PRAGMA integrity_check", [], |r| r.get(0)))
        .await
        .unwrap();
    assert_eq!(check, "ok");
    println!("\nchild is done");
}

fn max_pages(pages: u32) -> impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static {
    move |conn| conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
}
