use std::ffi::OsStr;
use std::path::Path;

use rmcp::model::ReadResourceResponse;

use codexec_store::ExecutionStart;
use codexec_types::{
    AdmissionRequest, Edge, Grants, Identity, Language, Limits, Policy, Principal, RequestOrigin,
    TokenName, ToolFilter, WorkingDirPolicy,
};

use super::*;

const ID: &str = "exec_00000000000000000000000000000001";

fn parsed(rest: &str) -> Option<ResourceTarget> {
    uri::parse(&format!("{PREFIX}{rest}"))
}

fn id() -> ExecutionId {
    ExecutionId::from_bits(1)
}

#[test]
fn uris_name_an_execution_its_artifacts_or_one_artifact() {
    assert_eq!(parsed(ID), Some(ResourceTarget::Execution(id())));
    assert_eq!(parsed(&format!("{ID}/artifacts")), Some(ResourceTarget::Artifacts(id())));
    let names = |rest: &str| match parsed(&format!("{ID}/artifacts/{rest}")) {
        Some(ResourceTarget::Artifact(_, names)) => names,
        other => panic!("{rest}: {other:?}"),
    };
    assert_eq!(names("a.txt"), ["a.txt"]);
    assert_eq!(names("sub/b%20c.txt"), ["sub", "b c.txt"]);
    assert_eq!(names("%61%C3%A4ä"), ["aää"]);
    assert_eq!(names("100%25"), ["100%"]);
    assert_eq!(names("..."), ["..."]);
}

#[test]
fn invalid_uris_are_rejected() {
    for rest in [
        "",
        "exec_1",
        "x",
        "../x",
        &format!("{ID}/"),
        &format!("{ID}/other"),
        &format!("/{ID}"),
        &format!("{ID}?x"),
    ] {
        assert_eq!(parsed(rest), None, "{rest}");
    }
    for path in [
        "", "/a", "a/", "a//b", ".", "..", "../x", "a/../b", "a/..", "%2e%2e/x", "%2E", ".%2e",
        "a%2Fb", "%2fetc", "a%00b", "%", "%2", "%zz", "%+1", "a%", "%%41",
    ] {
        assert_eq!(parsed(&format!("{ID}/artifacts/{path}")), None, "{path}");
    }
    assert_eq!(uri::parse("file:///etc/passwd"), None);
}

#[test]
fn an_artifact_uri_can_be_parsed_back() {
    for path in ["a.txt", "sub/deep/b c.txt", "ä%/\u{202e}x\n", "a?b#c"] {
        let uri = uri::artifact_uri(&id(), Path::new(path));
        assert!(uri.is_ascii() && !uri.contains(['\n', '?', '#', ' ']), "{uri}");
        let Some(ResourceTarget::Artifact(_, names)) = uri::parse(&uri) else { panic!("{uri}") };
        assert_eq!(names.iter().collect::<std::path::PathBuf>(), Path::new(path));
    }
}

#[track_caller]
fn check_kind(name: &str, mime: Option<&str>) {
    assert_eq!(media_type::from_name(OsStr::new(name)).mime, mime, "{name}");
}

#[test]
fn extensions_determine_the_media_type() {
    check_kind("a.PNG", Some("image/png"));
    check_kind("a.b.csv", Some("text/csv"));
    check_kind("a.svg", Some("image/svg+xml"));
    check_kind("noending", None);
    check_kind(".json", None);
    check_kind("a.exe", None);
}

fn local_scope() -> ReadScope {
    ReadScope::Of(Identity::LocalUser)
}

/// Records an execution of the local user.
async fn store_execution(records: &Records) {
    let policy = Policy {
        languages: Language::ALL.to_vec(),
        code_bytes: 1_000,
        input_bytes: 1_000,
        limits: Limits::DEFAULT,
        max_wall: Limits::DEFAULT.wall,
        tools: ToolFilter::all(),
        grants: Grants::default(),
        files: WorkingDirPolicy::default(),
    };
    let request = AdmissionRequest::new(Language::Python, "1".to_owned());
    let begin = ExecutionStart {
        id: &id(),
        admitted: &policy.admit(request, &[], None).expect("admitted"),
        started: std::time::SystemTime::now(),
        session: None,
        script: None,
        context: &RequestOrigin::default(),
        principal: &Principal::new(Identity::LocalUser, Edge::Stdio),
    };
    records.store().await.expect("a store").begin(begin).await.expect("recorded");
}

#[tokio::test]
async fn resources_of_another_identity_do_not_exist() {
    let dir = tempfile::tempdir().expect("a directory");
    let records = Records::at(dir.path().to_owned());
    store_execution(&records).await;
    let folder = records.artifacts_folder(&id());
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("a.txt"), "text").expect("written");
    let ann = ReadScope::Of(Identity::Token(TokenName::new("ann").expect("a name")));
    for rest in ["", "/artifacts", "/artifacts/a.txt"] {
        let uri = format!("{PREFIX}{ID}{rest}");
        assert!(read(&records, &local_scope(), &uri).await.is_ok(), "{rest}");
        assert!(read(&records, &ReadScope::Everyone, &uri).await.is_ok(), "{rest}");
        let refused = read(&records, &ann, &uri).await.expect_err("refused");
        // Also the answer is the same as for an execution that never existed.
        let unknown = uri.replace("0001", "0002");
        let missing = read(&records, &ann, &unknown).await.expect_err("refused");
        assert_eq!(refused.message.replace("0001", "0002"), missing.message, "{rest}");
    }
}

/// Returns the content of one artifact, as `mime text` or `mime blob <base64>`.
async fn read_content(name: &str, bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let records = Records::at(dir.path().to_owned());
    store_execution(&records).await;
    let folder = records.artifacts_folder(&id());
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join(name), bytes).expect("written");
    let uri = uri::artifact_uri(&id(), Path::new(name));
    let Ok(ReadResourceResponse::Complete(read)) = read(&records, &local_scope(), &uri).await
    else {
        panic!("{uri} is not read")
    };
    match &read.contents[0] {
        ResourceContents::TextResourceContents { mime_type, text, .. } => {
            format!("{} {text}", mime_type.as_deref().unwrap_or("-"))
        }
        ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
            format!("{} blob {blob}", mime_type.as_deref().unwrap_or("-"))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn text_comes_as_text_and_the_rest_as_a_blob() {
    assert_eq!(read_content("a.csv", b"a,b\n").await, "text/csv a,b\n");
    assert_eq!(read_content("a b", "ä".as_bytes()).await, "text/plain ä");
    assert_eq!(read_content("a.bin", b"\xff\x00").await, "application/octet-stream blob /wA=");
    assert_eq!(read_content("a.txt", b"a\0").await, "text/plain blob YQA=");
    assert_eq!(read_content("a.png", b"abc").await, "image/png blob YWJj");
}

#[tokio::test]
async fn missing_artifacts_are_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let records = Records::at(dir.path().to_owned());
    let refused = |rest: &str| {
        let uri = format!("{PREFIX}{ID}{rest}");
        let records = &records;
        async move {
            read(records, &local_scope(), &uri).await.expect_err("refused").message.into_owned()
        }
    };
    let no_artifact = "there is no artifact \"codexec://executions/exec_";
    let message = refused("/artifacts/nowhere").await;
    assert!(message.starts_with(no_artifact), "{message}");
    for rest in ["", "/artifacts", "/artifacts/../../codexec.db", "/other"] {
        let message = refused(rest).await;
        assert!(message.starts_with("there is no resource "), "{message}");
    }
}
