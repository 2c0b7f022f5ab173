use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn grant() -> Grant {
    serde_json::from_value(serde_json::json!({
        "server": "https://mcp.example.com/mcp",
        "issuer": "https://login.example.com",
        "resource": "https://mcp.example.com/mcp",
        "token_endpoint": "https://login.example.com/token",
        "client_id": "client",
        "client_secret": null,
        "is_secret_in_body": false,
        "scopes": [],
        "access_token": "hunter2",
        "refresh_token": "hunter3",
        "expires_at": null,
    }))
    .expect("a grant")
}

#[test]
fn up_7_tokens_are_for_their_owner_alone() {
    let home = tempfile::tempdir().expect("a directory");
    let store = Store::new(home.path(), &ServerName::new("s").expect("a name"));
    assert_eq!(store.load(), Kept::default());
    let kept = Kept { grant: Some(grant()), ..Kept::default() };
    store.save(&kept).expect("saved");
    assert_eq!(store.load(), kept);
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&home.path().join("tokens")), 0o700);
    assert_eq!(mode(&home.path().join("tokens/s.json")), 0o600);
    assert!(!format!("{kept:?}").contains("hunter"), "{kept:?}");
    let names: Vec<_> = std::fs::read_dir(home.path().join("tokens")).expect("there").collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_broken_file_is_no_grant() {
    let home = tempfile::tempdir().expect("a directory");
    let store = Store::new(home.path(), &ServerName::new("s").expect("a name"));
    store.save(&Kept { grant: Some(grant()), ..Kept::default() }).expect("saved");
    std::fs::write(&store.path, "{\"grant\": {\"server\": ").expect("written");
    assert_eq!(store.load(), Kept::default());
}
