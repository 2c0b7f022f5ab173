use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    process::{Child, Command, Stdio},
    sync::LazyLock,
    time::{Duration, UNIX_EPOCH},
};

use codexec_types::{
    AdmissionRequest, Admitted, Artifact, Crash, Edge, FileChanges, Grants, GuestOutput, Identity,
    Json, Language, Limit, Limits, NotWritten, Outcome, Policy, Principal, RecordEnding,
    RequestOrigin, RequestedLimits, Thrown, ThrownCode, TokenName, ToolFilter,
};

mod admitted;
pub(crate) mod identities;
pub(crate) mod logs;
pub(crate) mod retention;
mod searches;
mod secrets;

use tempfile::TempDir;

use super::*;
use crate::{CoarseStatus, ExecutionStatus};

/// The scope of most tests.
const ALL: ReadScope = ReadScope::Everyone;
const CHILD: &str = "CODEXEC_STORE_TEST_CHILD";

#[tokio::test]
async fn an_execution_is_written_when_it_starts_and_when_it_ends() {
    let (store, _home) = store().await;
    let id = ExecutionId::from_bits(1);
    assert_eq!(store.get(&id, &ALL).await.unwrap(), None);

    begin(&store, &id, "6*7", at(5_000)).await.unwrap();
    let begun = store.get(&id, &ALL).await.unwrap().unwrap();
    assert_eq!((begun.summary.status, begun.code.as_str()), (ExecutionStatus::Running, "6*7"));
    assert_eq!(
        store.count_executions(&ALL).await.unwrap(),
        ExecutionCounts { running: 1, total: 1 }
    );

    let outcome = Outcome::Returned(Json::parse("42".to_owned()).unwrap());
    store.finish(&id, finish(RecordEnding::Outcome(&outcome))).await.unwrap();
    let ended = store.get(&id, &ALL).await.unwrap().unwrap();
    let summary = ExecutionSummary {
        id,
        language: "typescript".to_owned(),
        status: ExecutionStatus::Returned,
        kind: CoarseStatus::Success,
        error_code: None,
        message: None,
        started: at(5_000),
        ended: Some(at(5_007)),
        duration: Some(Duration::from_millis(7)),
        tool_calls: Some(3),
        posture: Some("user,pid,mount".to_owned()),
        peak_memory_bytes: Some(1 << 20),
        cpu: Some(Duration::from_micros(900)),
        limits_met: vec![],
        exit_code: None,
        images: Some(2),
        session: None,
        script: None,
    };
    assert_eq!(store.list_recent(10, &ALL).await.unwrap(), vec![summary.clone()]);
    let whole = ExecutionRecord {
        summary,
        code: "6*7".to_owned(),
        input: "null".to_owned(),
        args: vec![],
        written: Some(HELLO.clone()),
        value: Some("42".to_owned()),
        wall: Duration::from_secs(30),
        changes: FileChanges::default(),
        working_dir: None,
        context: RequestOrigin::default(),
        identity: Some(Identity::LocalUser),
        edge: Some(Edge::Stdio),
        allowed_tools: Some(vec![vec!["*".to_owned()]]),
        grants: vec![],
        calls: vec![],
        packages: vec![],
    };
    assert_eq!(ended, whole);
    assert_eq!(
        store.count_executions(&ALL).await.unwrap(),
        ExecutionCounts { running: 0, total: 1 }
    );
}

#[tokio::test]
async fn every_ending_has_a_status_a_code_and_a_message() {
    let thrown =
        |message: String| Thrown { code: ThrownCode::RuntimeError, message, at: None, stack: None };
    let outcome = |outcome| async move { ending(RecordEnding::Outcome(&outcome)).await };
    assert_eq!(outcome(Outcome::Threw(thrown("no".into()))).await, "threw RUNTIME_ERROR no");
    assert_eq!(outcome(Outcome::Stopped(Limit::Wall)).await, "stopped TIMEOUT -");
    assert_eq!(outcome(Outcome::Crashed(Crash::Exited)).await, "crashed CRASHED -");
    assert_eq!(outcome(Outcome::Exited { code: 3 }).await, "threw NONZERO_EXIT exit code 3");
    assert_eq!(outcome(Outcome::Cancelled).await, "cancelled CANCELLED -");
    assert_eq!(ending(RecordEnding::Failed { code: "busy" }).await, "failed busy -");
    let long = outcome(Outcome::Threw(thrown("ä".repeat(20_000)))).await;
    assert_eq!(long.len(), "threw RUNTIME_ERROR ".len() + (16 << 10));
}

#[tokio::test]
async fn changes_limits_and_images_are_stored() {
    let (store, _home) = store().await;
    let id = ExecutionId::from_bits(1);
    begin(&store, &id, "1", at(0)).await.unwrap();
    let file = |path: &str| Artifact { path: path.to_owned(), bytes: 7 };
    let changes = FileChanges {
        created: vec![file("plot.png"), file("sub/\"\n\u{202e}.txt")],
        modified: vec![file("data.csv")],
        deleted: vec![file("old.txt")],
        held_back: vec![NotWritten {
            path: ".mcp.json".to_owned(),
            reason: "it names programs that MCP clients start".to_owned(),
        }],
        conflicts: vec![],
        left_out: 13,
        between_cells: Some(Box::new(FileChanges {
            created: vec![file("late")],
            ..FileChanges::default()
        })),
        nested: None,
    };
    let outcome = Outcome::Exited { code: 3 };
    let finish = ExecutionEnd {
        changes: &changes,
        limits_met: &[Limit::Disk, Limit::Processes],
        images: 1,
        ..finish(RecordEnding::Outcome(&outcome))
    };
    store.finish(&id, finish).await.unwrap();
    let stored = store.get(&id, &ALL).await.unwrap().unwrap();
    assert_eq!(stored.changes, changes);
    assert_eq!(stored.summary.limits_met, ["DISK_LIMIT", "PROCESS_LIMIT"]);
    assert_eq!((stored.summary.exit_code, stored.summary.images), (Some(3), Some(1)));
    assert_eq!(store.list_recent(1, &ALL).await.unwrap(), [stored.summary]);
}

#[tokio::test]
async fn an_execution_is_finished_once() {
    let (store, _home) = store().await;
    let id = ExecutionId::from_bits(1);
    let finish = finish(RecordEnding::Outcome(&Outcome::Cancelled));
    assert_eq!(store.finish(&id, finish).await.unwrap_err().code(), "store_not_running");
    begin(&store, &id, "1", at(0)).await.unwrap();
    assert_eq!(begin(&store, &id, "1", at(0)).await.unwrap_err().code(), "store_write");

    // Concurrent, so that they share a commit: exactly one may succeed.
    let ends = (0..20).map(|_| {
        let (store, id) = (store.clone(), id.clone());
        tokio::spawn(async move { store.finish(&id, finish).await.is_ok() })
    });
    let mut won = 0;
    for end in ends.collect::<Vec<_>>() {
        won += u32::from(end.await.unwrap());
    }
    assert_eq!(won, 1);
}

#[tokio::test]
async fn concurrent_servers_share_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codexec.db");
    let servers = (0..8u128).map(|server| {
        let path = path.clone();
        tokio::spawn(async move {
            let store = Store::open(&path, Durability::Process).await?;
            for n in 0..25 {
                let id = ExecutionId::from_bits(server * 100 + n);
                begin(&store, &id, "1", at(0)).await?;
                store.finish(&id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await?;
            }
            assert_eq!(store.interrupt_leftovers(at(0)).await?, 0);
            Ok::<_, StoreError>(())
        })
    });
    for server in servers.collect::<Vec<_>>() {
        server.await.unwrap().unwrap();
    }
    let store = Store::open(&path, Durability::Process).await.unwrap();
    assert_eq!(
        store.count_executions(&ALL).await.unwrap(),
        ExecutionCounts { running: 0, total: 200 }
    );
    for name in ["codexec.db", "codexec.db-wal", "codexec.db-shm"] {
        let mode = fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn running_executions_of_a_killed_server_are_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codexec.db");
    let mut child = other_server(&path);
    let store = Store::open(&path, Durability::Process).await.unwrap();
    let ours = ExecutionId::from_bits(1);
    begin(&store, &ours, "1", at(0)).await.unwrap();

    assert_eq!(store.interrupt_leftovers(at(0)).await.unwrap(), 0, "it lives");
    assert_eq!(store.count_executions(&ALL).await.unwrap().running, 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(store.interrupt_leftovers(at(9_000)).await.unwrap(), 1);

    let orphan = store.get(&ExecutionId::from_bits(77), &ALL).await.unwrap().unwrap().summary;
    assert_eq!(
        (orphan.status, orphan.error_code.as_deref(), orphan.ended),
        (ExecutionStatus::Failed, Some("interrupted"), Some(at(9_000)))
    );
    let ours = store.get(&ours, &ALL).await.unwrap().unwrap().summary;
    assert_eq!(ours.status, ExecutionStatus::Running);
    let locks = fs::read_dir(folder.path().join("owners")).unwrap();
    let locks = locks.filter(|file| file.as_ref().unwrap().path().extension().is_some());
    assert_eq!(locks.count(), 1, "only the living server's lock is left");
}

/// The child process of the test above. Does nothing unless that test started it.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "how the test's two processes find each other")]
async fn child_begins_and_waits_to_be_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = Store::open(Path::new(&path), Durability::Process).await.unwrap();
    begin(&store, &ExecutionId::from_bits(77), "1", at(0)).await.unwrap();
    println!("\nchild is ready");
    let _ = std::io::stdin().read(&mut [0]);
}

async fn ending(ending: RecordEnding<'_>) -> String {
    let (store, _home) = store().await;
    let id = ExecutionId::from_bits(1);
    begin(&store, &id, "1", at(0)).await.unwrap();
    store.finish(&id, finish(ending)).await.unwrap();
    let summary = store.get(&id, &ALL).await.unwrap().unwrap().summary;
    let (code, message) = (summary.error_code, summary.message);
    let word = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    format!("{} {} {}", summary.status.name(), word(code), word(message))
}

#[expect(clippy::disallowed_methods, reason = "a server that is killed must be a real process")]
fn other_server(database: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::child_begins_and_waits_to_be_killed", "--nocapture"])
        .env(CHILD, database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "child is ready"));
    child
}

pub(crate) fn finish(ending: RecordEnding<'_>) -> ExecutionEnd<'_> {
    ExecutionEnd {
        ending,
        output: &HELLO,
        value: Some("42"),
        tool_calls: 3,
        duration: Duration::from_millis(7),
        posture: "user,pid,mount",
        peak_memory_bytes: Some(1 << 20),
        cpu: Some(Duration::from_micros(900)),
        changes: &NOTHING,
        limits_met: &[],
        images: 2,
    }
}

pub(crate) static HELLO: LazyLock<GuestOutput> =
    LazyLock::new(|| GuestOutput::new("hello\n".to_owned(), vec![(0, 2)]));

pub(crate) static NOTHING: FileChanges = FileChanges {
    created: vec![],
    modified: vec![],
    deleted: vec![],
    held_back: vec![],
    conflicts: vec![],
    left_out: 0,
    between_cells: None,
    nested: None,
};

/// Opens a store in a new temporary folder.
pub(crate) async fn store() -> (Store, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("codexec.db"), Durability::Process).await.unwrap();
    (store, home)
}

/// Returns the SQLite backend of a store.
pub(crate) fn sqlite(store: &Store) -> &SqliteStore {
    match &store.backend {
        Backend::Sqlite(store) => store,
    }
}

pub(crate) async fn begin(
    store: &Store,
    id: &ExecutionId,
    code: &str,
    started: SystemTime,
) -> Result<(), StoreError> {
    begin_admitted(store, id, &admitted(code), started).await
}

pub(crate) async fn begin_admitted(
    store: &Store,
    id: &ExecutionId,
    admitted: &Admitted,
    started: SystemTime,
) -> Result<(), StoreError> {
    begin_by(store, id, admitted, (started, &local())).await
}

pub(crate) async fn begin_by(
    store: &Store,
    id: &ExecutionId,
    admitted: &Admitted,
    (started, principal): (SystemTime, &Principal),
) -> Result<(), StoreError> {
    let context = RequestOrigin::default();
    let begin = ExecutionStart {
        id,
        admitted,
        started,
        session: None,
        script: None,
        context: &context,
        principal,
    };
    store.begin(begin).await
}

pub(crate) fn admitted(code: &str) -> Admitted {
    policy().admit(admitted_request(code), &[], None).unwrap()
}

pub(crate) fn admitted_request(code: &str) -> AdmissionRequest {
    AdmissionRequest::new(Language::TypeScript, code.to_owned())
}

pub(crate) fn policy() -> Policy {
    Policy {
        languages: Language::ALL.to_vec(),
        code_bytes: 1 << 20,
        input_bytes: 1 << 20,
        limits: Limits::DEFAULT,
        max_wall: Duration::from_secs(300),
        tools: ToolFilter::all(),
        grants: Grants::default(),
        files: codexec_types::WorkingDirPolicy::default(),
    }
}

pub(crate) fn local() -> Principal {
    Principal::new(Identity::LocalUser, Edge::Stdio)
}

pub(crate) fn token(name: &str) -> Identity {
    Identity::Token(TokenName::new(name).unwrap())
}

pub(crate) fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}
