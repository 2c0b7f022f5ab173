//! What only this store has: its file, its schema, its threads and its tables.

mod full;

use std::{fs, time::Duration};

use codexec_types::{GuestOutput, Identity, Language, Outcome, RecordEnding, SessionId};

use super::*;
use crate::{
    PackageInstall, PackageTarget, Store,
    store::tests::{
        identities::ann,
        logs::{AT, lines, start_session},
        retention::days_ago,
        *,
    },
};

/// The scope of most tests.
const ALL: ReadScope = ReadScope::Everyone;

/// Migrates a database of the first release.
#[tokio::test]
async fn an_older_database_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codexec.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../../migrations/sqlite/0001_executions.sql")).unwrap();
    let id = ExecutionId::from_bits(1);
    let row = "INSERT INTO executions (id, owner, status, started_ms, language, wall_ms, input, \
               code, output) VALUES (?1, 'x', 'returned', 5, 'typescript', 1, 'null', '1', 'hi')";
    old.execute(row, [id.as_str()]).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    let store = Store::open(&path, Durability::Process).await.unwrap();
    let stored = store.get(&id, &ALL).await.unwrap().unwrap();
    let output = stored.written.as_ref().map(GuestOutput::text);
    assert_eq!((output, &stored.changes), (Some("hi"), &NOTHING));
    assert_eq!((&stored.allowed_tools, &stored.grants), (&None, &vec![]));
    assert_eq!((&stored.identity, stored.edge), (&Some(Identity::LocalUser), None));
    let is_visible = async |identity| store.contains(&id, &ReadScope::Of(identity)).await.unwrap();
    assert!(is_visible(Identity::LocalUser).await && !is_visible(token("ann")).await);
    let summary = stored.summary;
    assert_eq!((summary.limits_met, summary.exit_code, summary.images), (vec![], None, None));
    let id = ExecutionId::from_bits(2);
    begin(&store, &id, "1", at(0)).await.unwrap();
    store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    assert_eq!(store.get(&id, &ALL).await.unwrap().unwrap().summary.images, Some(2));
}

#[tokio::test]
async fn a_dropped_store_releases_its_executions_and_ends_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codexec.db");
    let first = Store::open(&path, Durability::Process).await.unwrap();
    begin(&first, &ExecutionId::from_bits(1), "1", at(0)).await.unwrap();
    let jobs = sqlite(&first).jobs.downgrade();
    drop(first);
    assert!(jobs.upgrade().is_none());
    let second = Store::open(&path, Durability::Process).await.unwrap();
    // The thread closes the file shortly after the last handle is dropped.
    while second.interrupt_leftovers(at(0)).await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(second.count_executions(&ALL).await.unwrap().running, 0);
}

#[tokio::test]
async fn checkpoints_run_while_the_store_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codexec.db");
    let store = Store::open(&path, Durability::Process).await.unwrap();
    for n in 0..600 {
        begin(&store, &ExecutionId::from_bits(n), "1", at(0)).await.unwrap();
    }
    let checkpointed = async {
        while fs::metadata(&path).unwrap().len() < 50_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), checkpointed).await.unwrap();
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codexec.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let err = Store::open(&path, Durability::Process).await.unwrap_err();
    assert_eq!(err.code(), "store_newer");
    let path = path.display();
    assert_eq!(
        err.to_string(),
        format!(
            "the database {path} has schema version 99, but this codexec supports versions up to \
             6; update codexec, or choose another CODEXEC_HOME"
        )
    );
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codexec.db");
    let garbage = "not a database. ".repeat(1_000);
    fs::write(&path, &garbage).unwrap();
    let err = Store::open(&path, Durability::Process).await.unwrap_err();
    assert_eq!(err.code(), "store_corrupt");
    let path = path.display().to_string();
    assert_eq!(
        err.to_string(),
        format!(
            "the database {path} is damaged or not a database; move it away to start a new one"
        )
    );
    assert_eq!(fs::read_to_string(path).unwrap(), garbage, "the file is unchanged");
}

#[tokio::test]
async fn an_unwritable_folder_is_refused() {
    // Not even root can create a file here.
    let err =
        Store::open(Path::new("/proc/self/codexec.db"), Durability::Process).await.unwrap_err();
    assert_eq!(err.code(), "store_open");
}

#[tokio::test]
async fn package_installations_record_who_requested_them() {
    let (store, _home) = store().await;
    let session = PackageTarget::Session(SessionId::from_bits(1));
    let targets = [(session, local()), (PackageTarget::Everybody(Language::Python), ann())];
    for (target, principal) in &targets {
        let install = PackageInstall {
            target,
            name: "pandas",
            version: Some("2"),
            is_ok: true,
            principal,
            at: at(0),
        };
        store.record_package_install(&install).await.unwrap();
    }
    let read = |table: &'static str| {
        sqlite(&store).queue(move |conn| {
            let sql = format!("SELECT name || ' ' || principal || ' ' || edge FROM {table}");
            conn.query_row(&sql, [], |row| row.get::<_, String>(0))
        })
    };
    assert_eq!(read("session_packages").await.unwrap(), "pandas local stdio");
    assert_eq!(read("shared_packages").await.unwrap(), "pandas token:ann http");
}

/// Simulates a server that was killed after it wrote the lines, before it deleted the entries.
#[tokio::test]
async fn an_entry_that_is_in_its_file_is_not_written_again() {
    let (store, home) = store().await;
    let session = start_session(&store, 7, "x").await;
    for n in 0..100 {
        let id = ExecutionId::from_bits(n);
        begin(&store, &id, "1", at(AT)).await.unwrap();
        store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    }
    store.flush().await.unwrap();
    let before = lines(&home, "executions-2026-02-09.jsonl");
    assert_eq!(before.len(), 100);
    let again = "INSERT INTO unlogged (owner, execution) SELECT 'dead', seq FROM executions";
    sqlite(&store).queue(move |conn| conn.execute(again, [])).await.unwrap();
    let line = lines(&home, &format!("session-{session}.jsonl"))[0].to_string();
    let lifecycle = "INSERT INTO unlogged (owner, session, line) VALUES ('dead', ?1, ?2)";
    let id = session.clone();
    sqlite(&store).queue(move |conn| conn.execute(lifecycle, [id.as_str(), &line])).await.unwrap();
    let new = ExecutionId::from_bits(100);
    begin(&store, &new, "1", at(AT)).await.unwrap();
    store.finish(&new, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    // The kill also left an incomplete last line.
    let path = home.path().join("logs/executions-2026-02-09.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 40]).unwrap();

    store.interrupt_leftovers(at(AT)).await.unwrap();
    store.flush().await.unwrap();
    let after = lines(&home, "executions-2026-02-09.jsonl");
    let ids: std::collections::BTreeSet<String> =
        after.iter().map(|line| line["execution_id"].to_string()).collect();
    assert_eq!((after.len(), ids.len()), (101, 101), "each once");
    assert_eq!(lines(&home, &format!("session-{session}.jsonl")).len(), 1);
}

#[tokio::test]
async fn one_pass_removes_a_limited_number() {
    let (store, _home) = store().await;
    let many = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10050)
        INSERT INTO executions (id, owner, status, started_ms, language, wall_ms, input, code, end_number)
        SELECT format('exec_%032x', n), 'x', 'returned', ?1, 'python', 1, 'null', '1', n FROM n";
    let then = codexec_types::unix_ms(days_ago(40));
    sqlite(&store).queue(move |conn| conn.execute(many, [then])).await.unwrap();
    let removed = store.apply_retention(&Retention::default(), days_ago(0)).await.unwrap();
    assert_eq!((removed.executions, removed.is_more), (10_000, true));
    let removed = store.apply_retention(&Retention::default(), days_ago(0)).await.unwrap();
    assert_eq!((removed.executions, removed.is_more), (50, false));
}

#[tokio::test]
async fn a_corrupt_index_is_rebuilt() {
    let (store, home) = store().await;
    let id = ExecutionId::from_bits(1);
    begin(&store, &id, "alpha", at(0)).await.unwrap();
    store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    let query = LogQuery { text: Some("alpha".to_owned()), limit: 9, ..LogQuery::default() };
    assert_eq!(store.search(&query, &ALL).await.unwrap().total, 1);
    drop(store);
    let index = home.path().join("search.db");
    while home.path().join("search.db-wal").exists() {
        tokio::task::yield_now().await;
    }
    fs::write(&index, "not a database. ".repeat(1_000)).unwrap();
    let store = Store::open(&home.path().join("codexec.db"), Durability::Process).await.unwrap();
    assert_eq!(store.search(&query, &ALL).await.unwrap().total, 1);
}

/// A test cannot see fsync, only that records are the same with it.
#[tokio::test]
async fn records_are_the_same_with_power_durability() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("codexec.db"), Durability::Power).await.unwrap();
    let ends = (0..20).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let id = ExecutionId::from_bits(n);
            begin(&store, &id, "1", at(0)).await?;
            store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await
        })
    });
    for end in ends.collect::<Vec<_>>() {
        end.await.unwrap().unwrap();
    }
    store.flush().await.unwrap();
    assert_eq!(lines(&home, "executions-1970-01-01.jsonl").len(), 20);
    let synchronous = |c: &Connection| c.query_row("PRAGMA synchronous", [], |r| r.get(0));
    let synchronous: u32 = sqlite(&store).queue(synchronous).await.unwrap();
    assert_eq!(synchronous, 2, "FULL");
}
