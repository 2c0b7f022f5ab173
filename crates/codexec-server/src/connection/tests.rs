//! Two identities in one process: neither sees what the other one has.

use std::time::{Duration, SystemTime};

use codexec_exec::{FileSettings, GuestSettings, Settings, Workers};
use codexec_functions::OwnFunction;
use codexec_gateway::{Gateway, GatewaySettings, Warden};
use codexec_scripts::Library;
use codexec_store::{ExecutionEnd, ExecutionStart, SessionStart};
use codexec_types::{
    AdmissionRequest, Edge, ExecutionId, FileChanges, Grants, GuestOutput, Identity, Language,
    Limits, Outcome, RecordEnding, RequestOrigin, SessionId, TokenName, ToolFilter,
    WorkingDirPolicy,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::sessions::Opener;
use crate::snapshots::{Snapshot, SnapshotFilter};
use crate::{App, Client, Records, SessionSettings};

/// An app whose store has one execution and one session of each identity. No worker is started.
struct Shared {
    app: App,
    local: Client,
    /// The local user at a terminal.
    terminal: Client,
    ann: Client,
    _home: TempDir,
}

fn client(identity: Identity, edge: Edge) -> Client {
    let policy = Arc::new(LivePolicy::new(policy()));
    let principal = Principal::new(identity, edge);
    Client::new(Arc::new(Connection::new(principal, Toolsets::new(Vec::new()), policy)))
}

fn ann() -> Identity {
    Identity::Token(TokenName::new("ann").expect("a name"))
}

fn policy() -> Policy {
    Policy {
        languages: Language::ALL.to_vec(),
        code_bytes: 1_000,
        input_bytes: 1_000,
        limits: Limits::DEFAULT,
        max_wall: Duration::from_secs(300),
        tools: ToolFilter::all(),
        grants: Grants::default(),
        files: WorkingDirPolicy::default(),
    }
}

fn settings() -> Settings {
    Settings {
        program: "/nonexistent".into(),
        role: "zygote-js",
        programs_role: "zygote-programs",
        mounter_role: "mounter",
        limits: Limits::DEFAULT,
        guests: GuestSettings::default(),
        path: std::ffi::OsString::new(),
        home: None,
        guest_paths: codexec_types::GuestPaths::default(),
        max: 1,
        warm: 0,
        queue: 1,
        queue_wait: Duration::ZERO,
        lowered: Vec::new(),
        files: FileSettings { max_bytes: 1, max_files: 1, let_through: Vec::new() },
        work_dirs: Vec::new(),
        packages: codexec_exec::packages::PackageSettings::default(),
    }
}

fn execution_id(client: &Client) -> ExecutionId {
    match client.identity() {
        Identity::LocalUser => ExecutionId::from_bits(1),
        Identity::Token(_) => ExecutionId::from_bits(2),
    }
}

fn session_id(client: &Client) -> SessionId {
    match client.identity() {
        Identity::LocalUser => SessionId::from_bits(1),
        Identity::Token(_) => SessionId::from_bits(2),
    }
}

impl Shared {
    async fn new() -> Shared {
        let home = tempfile::tempdir().expect("a directory");
        let app = App::new(
            Workers::new(settings()),
            Gateway::new(Vec::new(), GatewaySettings::new(Vec::new(), Warden::none())),
            Records::at(home.path().to_owned()),
            SessionSettings::default(),
            Library::at(home.path().join("scripts")),
        );
        let local = client(Identity::LocalUser, Edge::Stdio);
        let terminal = client(Identity::LocalUser, Edge::CommandLine);
        let shared = Shared { app, local, terminal, ann: client(ann(), Edge::Http), _home: home };
        for client in [&shared.local, &shared.ann] {
            shared.store_execution(client).await;
            shared.store_session(client).await;
        }
        shared
    }

    async fn store_execution(&self, client: &Client) {
        let (id, store) = (execution_id(client), self.app.records.store().await.expect("a store"));
        let request = AdmissionRequest::new(Language::Python, "word".to_owned());
        let admitted = policy().admit(request, &[], None).expect("admitted");
        let begin = ExecutionStart {
            id: &id,
            admitted: &admitted,
            started: SystemTime::now(),
            session: None,
            script: None,
            context: &RequestOrigin::default(),
            principal: &client.principal(),
        };
        store.begin(begin).await.expect("recorded");
        let end = ExecutionEnd {
            ending: RecordEnding::Outcome(&Outcome::Cancelled),
            output: &GuestOutput::default(),
            value: None,
            tool_calls: 0,
            duration: Duration::ZERO,
            posture: "",
            peak_memory_bytes: None,
            cpu: None,
            changes: &FileChanges::default(),
            limits_met: &[],
            images: 0,
        };
        store.finish(&id, end).await.expect("recorded");
    }

    async fn store_session(&self, client: &Client) {
        let store = self.app.records.store().await.expect("a store");
        let start = SessionStart {
            id: &session_id(client),
            principal: &client.principal(),
            language: Language::Python,
            name: None,
            pid: None,
            working_dir: None,
            context: &RequestOrigin::default(),
            at: SystemTime::now(),
        };
        store.begin_session(&start).await.expect("recorded");
    }

    async fn call(&self, name: &str, args: Value, client: &Client) -> Result<Value, String> {
        let Value::Object(args) = args else { panic!("{args} is not an object") };
        let function = OwnFunction::from_name(name).expect("an own function");
        let called = self.app.call_own_function(function, args, client).await;
        called.map(|owned| owned.value).map_err(|error| error.code().to_owned())
    }

    /// Returns one field of all entries of a list that an own function returns.
    async fn list(&self, name: &str, args: Value, client: &Client) -> Vec<String> {
        let value = self.call(name, args, client).await.expect("a list");
        let list = value.as_object().and_then(|fields| fields.values().find_map(Value::as_array));
        let id = |entry: &Value| {
            let id = entry.get("execution_id").or_else(|| entry.get("session_id"));
            id.unwrap_or(entry).as_str().unwrap_or_default().to_owned()
        };
        list.expect("a list").iter().map(id).collect()
    }
}

#[tokio::test]
async fn own_3_logs_of_another_identity_are_not_found() {
    let shared = Shared::new().await;
    for (client, other) in [
        (&shared.local, &shared.ann),
        (&shared.terminal, &shared.ann),
        (&shared.ann, &shared.local),
    ] {
        let own = execution_id(client).to_string();
        for args in [json!({}), json!({"query": "word"}), json!({"language": "python"})] {
            let found = shared.list("search_execution_logs", args.clone(), client).await;
            assert_eq!(found, [own.as_str()], "{args}");
        }
        let get = async |id: ExecutionId| {
            shared.call("get_execution_log", json!({"execution_id": id.as_str()}), client).await
        };
        assert_eq!(get(execution_id(client)).await.expect("a log")["execution_id"], own);
        assert_eq!(get(execution_id(other)).await, Err("EXECUTION_NOT_FOUND".to_owned()));
    }
}

#[tokio::test]
async fn a_connection_that_may_read_everything_reads_everything() {
    let shared = Shared::new().await;
    let policy = Arc::new(LivePolicy::new(policy()));
    let admin = Principal::new(ann(), Edge::Http);
    let admin = Connection::new(admin, Toolsets::new(Vec::new()), policy);
    let admin = Client::new(Arc::new(admin.with_read_access(ReadAccess::Everyone)));
    assert_eq!(shared.list("search_execution_logs", json!({}), &admin).await.len(), 2);
    assert_eq!(shared.list("session_history", json!({}), &admin).await.len(), 2);
}

#[tokio::test]
async fn ses_7_sessions_of_another_identity_do_not_exist() {
    let shared = Shared::new().await;
    for client in [&shared.local, &shared.terminal, &shared.ann] {
        let own = session_id(client).to_string();
        assert_eq!(shared.list("session_history", json!({}), client).await, [own]);
        let send = json!({"session_id": session_id(&shared.ann).as_str(), "code": "1"});
        let sent = shared.call("send_to_session", send, client).await;
        assert_eq!(sent, Err("SESSION_NOT_FOUND".to_owned()));
    }
    for (opener, client, is_accessible) in [
        (&shared.local, &shared.local, true),
        (&shared.local, &shared.terminal, true),
        (&shared.local, &shared.ann, false),
        (&shared.ann, &shared.local, false),
    ] {
        assert_eq!(Opener::of(opener).is_accessible_to(client), is_accessible);
    }
}

#[tokio::test]
async fn own_5_snapshots_of_another_identity_are_not_found() {
    let shared = Shared::new().await;
    for client in [&shared.local, &shared.ann] {
        let snapshot = Snapshot {
            name: "same".to_owned(),
            principal: client.principal(),
            server: String::new(),
            language: Language::Python,
            at: String::new(),
            cells: Vec::new(),
        };
        let over = SnapshotFilter { identity: client.identity().clone(), server: None };
        let snapshots = shared.app.records.snapshots(client.identity());
        snapshots.save(snapshot, over).await.expect("saved");
    }
    let bob = client(Identity::Token(TokenName::new("bob").expect("a name")), Edge::Http);
    for (client, expected) in [(&shared.terminal, 1), (&shared.ann, 1), (&bob, 0)] {
        let names = shared.list("list_snapshots", json!({}), client).await;
        assert_eq!(names.len(), expected);
        let filter = SnapshotFilter { identity: client.identity().clone(), server: None };
        let loaded = shared.app.records.snapshots(client.identity()).load("same", filter).await;
        assert_eq!(loaded.is_ok(), expected == 1);
        // Not even in the folder of somebody else.
        let other = SnapshotFilter { identity: client.identity().clone(), server: None };
        let theirs = if *client.identity() == ann() { Identity::LocalUser } else { ann() };
        assert!(shared.app.records.snapshots(&theirs).load("same", other).await.is_err());
    }
}

#[tokio::test]
async fn scripts_record_who_saved_each_version() {
    let shared = Shared::new().await;
    for (client, code) in [(&shared.local, "1"), (&shared.terminal, "2")] {
        let draft = json!({"name": "s", "code": code, "language": "python"});
        shared.call("save_script", draft, client).await.expect("saved");
        let got = shared.call("get_script", json!({"name": "s"}), &shared.local).await;
        assert_eq!(got.expect("a script")["code"], code);
    }
    let versions = shared.call("list_script_versions", json!({"name": "s"}), &shared.local).await;
    let versions = versions.expect("versions");
    let saved_by = |at: usize| versions["versions"][at]["saved_by"].clone();
    assert_eq!((saved_by(0), saved_by(1)), (json!("local@cli"), json!("local@stdio")));
}

#[test]
fn an_agent_is_a_claim_and_changes_no_owner() {
    let mut client = client(Identity::LocalUser, Edge::Stdio);
    client.context.agent_id = Some("planner".to_owned());
    assert_eq!(client.principal().to_string(), "local@stdio/planner");
    assert_eq!(client.read_scope(), ReadScope::Of(Identity::LocalUser));
}

#[test]
fn a_live_policy_changes_for_all_its_connections() {
    let live = Arc::new(LivePolicy::new(policy()));
    let connect = |identity| {
        let principal = Principal::new(identity, Edge::Http);
        Connection::new(principal, Toolsets::new(Vec::new()), Arc::clone(&live))
    };
    let (first, second) = (connect(Identity::LocalUser), connect(ann()));
    assert!(first.policy().tools.allows_server("git"));
    live.set_tools(ToolFilter::only(Vec::new()));
    for connection in [first, second] {
        assert!(!connection.policy().tools.allows_server("git"));
    }
}
