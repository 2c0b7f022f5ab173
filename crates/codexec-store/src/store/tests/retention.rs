//! Retention.

use std::os::unix::fs::symlink;

use codexec_types::{SessionId, format_utc_day};

use super::*;
use crate::{LogQuery, Retention, RetentionReport, SessionQuery};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The current day in these tests, since the epoch.
const TODAY: u64 = 20_500;

pub(crate) fn days_ago(days: u64) -> SystemTime {
    at((TODAY - days) * DAY_MS + DAY_MS / 2)
}

async fn add_ended(
    store: &Store,
    bits: u128,
    started: SystemTime,
    outcome: &Outcome,
) -> ExecutionId {
    let id = ExecutionId::from_bits(bits);
    begin(store, &id, &format!("word{bits} all"), started).await.unwrap();
    store.finish(&id, finish(RecordEnding::Outcome(outcome))).await.unwrap();
    id
}

fn good() -> Outcome {
    Outcome::Returned(Json::null())
}

#[tokio::test]
async fn only_expired_executions_are_removed() {
    let (store, home) = store().await;
    let bad = Outcome::Cancelled;
    let old_good = add_ended(&store, 1, days_ago(31), &good()).await;
    let old_bad = add_ended(&store, 2, days_ago(31), &bad).await;
    let older_bad = add_ended(&store, 3, days_ago(91), &bad).await;
    let young_good = add_ended(&store, 4, days_ago(29), &good()).await;
    let future = add_ended(&store, 5, days_ago(0) + Duration::from_secs(5_000_000), &good()).await;
    let running = ExecutionId::from_bits(6);
    begin(&store, &running, "1", days_ago(400)).await.unwrap();
    for id in [&old_good, &old_bad, &older_bad, &young_good] {
        let folder = home.path().join("artifacts").join(id.as_str()).join("sub");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.txt"), "x").unwrap();
    }
    store.flush().await.unwrap();
    let removed = store.apply_retention(&Retention::default(), days_ago(0)).await.unwrap();
    let expected =
        RetentionReport { executions: 2, log_files: 1, artifacts: 2, ..RetentionReport::default() };
    assert_eq!(removed, expected);
    for (id, is_kept) in [
        (&old_good, false),
        (&old_bad, true),
        (&older_bad, false),
        (&young_good, true),
        (&future, true),
        (&running, true),
    ] {
        assert_eq!(store.get(id, &ALL).await.unwrap().is_some(), is_kept, "{id}");
    }
    for (id, is_kept) in
        [(&old_good, false), (&old_bad, true), (&older_bad, false), (&young_good, true)]
    {
        assert_eq!(home.path().join("artifacts").join(id.as_str()).exists(), is_kept);
    }
    let day = |days| format!("executions-{}.jsonl", format_utc_day(days_ago(days)));
    let left = logs::lines(&home, &day(31));
    assert_eq!((left.len(), &left[0]["execution_id"]), (1, &old_bad.as_str().into()));
    assert!(!home.path().join("logs").join(day(91)).exists());
    assert_eq!(logs::lines(&home, &day(29)).len(), 1);
    let all = LogQuery { text: Some("all".to_owned()), limit: 9, ..LogQuery::default() };
    assert_eq!(store.search(&all, &ALL).await.unwrap().total, 3);
    assert_eq!(
        store.count_executions(&ALL).await.unwrap(),
        ExecutionCounts { running: 1, total: 4 }
    );
    // Later executions are found, even if the last ended one is gone.
    add_ended(&store, 7, days_ago(0), &good()).await;
    assert_eq!(store.search(&all, &ALL).await.unwrap().total, 4);
    assert_eq!(
        store.apply_retention(&Retention::default(), days_ago(0)).await.unwrap(),
        RetentionReport::default()
    );
}

#[tokio::test]
async fn executions_after_a_removed_last_one_are_found() {
    let (store, _home) = store().await;
    let all = LogQuery { text: Some("all".to_owned()), limit: 9, ..LogQuery::default() };
    add_ended(&store, 1, days_ago(100), &good()).await;
    assert_eq!(store.search(&all, &ALL).await.unwrap().total, 1);
    store.apply_retention(&Retention::default(), days_ago(0)).await.unwrap();
    assert_eq!(store.search(&all, &ALL).await.unwrap().total, 0);
    add_ended(&store, 2, days_ago(0), &good()).await;
    assert_eq!(store.search(&all, &ALL).await.unwrap().total, 1);
}

#[tokio::test]
async fn the_age_of_a_session_counts_from_its_end() {
    let (store, home) = store().await;
    let sessions: Vec<SessionId> = {
        let mut sessions = Vec::new();
        for (bits, ended) in [(1, Some(91)), (2, Some(89)), (3, None)] {
            let session = logs::start_session(&store, bits, "x").await;
            let id = ExecutionId::from_bits(bits);
            logs::begin_in(&store, &id, &session, days_ago(95)).await;
            store.finish(&id, finish(RecordEnding::Outcome(&good()))).await.unwrap();
            if let Some(days) = ended {
                store.end_session(&session, "manual", days_ago(days), 1).await.unwrap();
            }
            sessions.push(session);
        }
        sessions
    };
    store.flush().await.unwrap();
    let removed = store.apply_retention(&Retention::default(), days_ago(0)).await.unwrap();
    let expected =
        RetentionReport { executions: 1, sessions: 1, log_files: 1, ..RetentionReport::default() };
    assert_eq!(removed, expected);
    let query = SessionQuery { only: None, limit: 9 };
    let left: Vec<SessionId> = store
        .list_sessions(query, &ALL)
        .await
        .unwrap()
        .into_iter()
        .map(|session| session.id)
        .collect();
    assert_eq!(left, [sessions[2].clone(), sessions[1].clone()]);
    for (session, is_kept) in sessions.iter().zip([false, true, true]) {
        let path = home.path().join(format!("logs/session-{session}.jsonl"));
        assert_eq!(path.exists(), is_kept);
    }
}

#[tokio::test]
async fn the_oldest_are_removed_when_all_take_too_much_space() {
    let (store, home) = store().await;
    let output = GuestOutput::new("x".repeat(100_000), vec![]);
    for n in 0..1_100 {
        let id = ExecutionId::from_bits(n);
        begin(&store, &id, "1", days_ago(1)).await.unwrap();
        let outcome = good();
        let long = ExecutionEnd { output: &output, ..finish(RecordEnding::Outcome(&outcome)) };
        store
            .finish(&id, if n < 600 { long } else { finish(RecordEnding::Outcome(&outcome)) })
            .await
            .unwrap();
    }
    store.flush().await.unwrap();
    let retention = Retention { max_bytes: 60 << 20, ..Retention::default() };
    let removed = store.apply_retention(&retention, days_ago(0)).await.unwrap();
    assert_eq!((removed.executions, removed.is_more), (500, false));
    assert_eq!(store.get(&ExecutionId::from_bits(499), &ALL).await.unwrap(), None);
    assert!(store.get(&ExecutionId::from_bits(500), &ALL).await.unwrap().is_some());
    let day = format!("executions-{}.jsonl", format_utc_day(days_ago(1)));
    assert_eq!(logs::lines(&home, &day).len(), 600);
}

/// FS-016: symlinks are planted in place of old logs and artifacts.
#[tokio::test]
async fn log_1_retention_removes_only_its_own_files() {
    let (store, home) = store().await;
    let outside = tempfile::tempdir().unwrap();
    let sentinel = outside.path().join("sentinel");
    fs::write(&sentinel, "mine").unwrap();
    fs::create_dir(outside.path().join("dir")).unwrap();
    fs::write(outside.path().join("dir/inner"), "mine").unwrap();
    let old = add_ended(&store, 1, days_ago(400), &good()).await;
    store.flush().await.unwrap();
    let (logs, artifacts) = (home.path().join("logs"), home.path().join("artifacts"));
    fs::create_dir(&artifacts).unwrap();
    let day_of_old = format!("executions-{}.jsonl", format_utc_day(days_ago(400)));
    fs::remove_file(logs.join(&day_of_old)).unwrap();
    let links = [
        (logs.join("old"), outside.path().join("dir")),
        (logs.join("executions-2001-01-01.jsonl"), sentinel.clone()),
        (logs.join(day_of_old), sentinel.clone()),
        (artifacts.join(old.as_str()), outside.path().join("dir")),
    ];
    for (link, target) in &links {
        symlink(target, link).unwrap();
    }
    let mine = [
        logs.join("notes.txt"),
        logs.join("executions-2001-13-01.jsonl"),
        logs.join("executions-2999-01-01.jsonl"),
        logs.join("session-x.jsonl"),
        artifacts.join("exec_x"),
        home.path().join("executions-2001-01-01.jsonl"),
    ];
    for path in &mine {
        fs::write(path, "mine").unwrap();
    }
    let orphan = logs.join("executions-2001-01-02.jsonl");
    fs::write(&orphan, "{}\n").unwrap();
    let far = days_ago(0) + Duration::from_secs(300 * 24 * 60 * 60);
    add_ended(&store, 2, days_ago(0), &good()).await;
    store.flush().await.unwrap();
    let removed = store.apply_retention(&Retention::default(), far).await.unwrap();
    assert!(!removed.is_doubtful);
    assert_eq!((removed.executions, removed.log_files, removed.artifacts), (2, 2, 0));
    assert!(!orphan.exists(), "an old log without rows is removed");
    for (link, _) in &links {
        assert!(fs::symlink_metadata(link).unwrap().is_symlink(), "{}", link.display());
    }
    for path in &mine {
        assert_eq!(fs::read_to_string(path).unwrap(), "mine", "{}", path.display());
    }
    assert_eq!(fs::read_to_string(&sentinel).unwrap(), "mine");
    assert_eq!(fs::read_to_string(outside.path().join("dir/inner")).unwrap(), "mine");
}

#[tokio::test]
async fn a_clock_that_jumps_removes_nothing() {
    let (store, _home) = store().await;
    let id = add_ended(&store, 1, days_ago(0), &good()).await;
    assert!(!store.apply_retention(&Retention::default(), days_ago(0)).await.unwrap().is_doubtful);
    let ten_years = Duration::from_secs(3_650 * 24 * 60 * 60);
    let removed =
        store.apply_retention(&Retention::default(), days_ago(0) + ten_years).await.unwrap();
    assert_eq!(removed, RetentionReport { is_doubtful: true, ..RetentionReport::default() });
    assert!(store.get(&id, &ALL).await.unwrap().is_some());
    // The next pass accepts the clock, if it has not jumped again.
    assert_eq!(
        store
            .apply_retention(&Retention::default(), days_ago(0) + ten_years)
            .await
            .unwrap()
            .executions,
        1
    );
}
