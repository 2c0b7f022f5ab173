use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::{Warden, keyring::tests::with_keyring};

fn without_keyring() -> GatewaySettings {
    GatewaySettings::new(vec![("PATH".to_owned(), "/nowhere".to_owned())], Warden::none())
}

fn grant() -> TokenGrant {
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

#[tokio::test]
async fn rem_4_only_the_owner_can_read_tokens() {
    let home = tempfile::tempdir().expect("a directory");
    let store = LoginStore::new(home.path(), &ServerName::new("s").expect("a name"));
    let settings = without_keyring();
    assert_eq!(store.load(&settings).await, StoredLogin::default());
    let login = StoredLogin { grant: Some(grant()), ..StoredLogin::default() };
    assert_eq!(store.save(login.clone(), &settings).await.expect("saved"), login);
    assert_eq!(store.load(&settings).await, login);
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&home.path().join("tokens")), 0o700);
    assert_eq!(mode(&home.path().join("tokens/s.json")), 0o600);
    assert!(!format!("{login:?}").contains("hunter"), "{login:?}");
    let names: Vec<_> = std::fs::read_dir(home.path().join("tokens")).expect("there").collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[tokio::test]
async fn a_damaged_file_counts_as_no_login() {
    let home = tempfile::tempdir().expect("a directory");
    let store = LoginStore::new(home.path(), &ServerName::new("s").expect("a name"));
    let settings = without_keyring();
    let login = StoredLogin { grant: Some(grant()), ..StoredLogin::default() };
    store.save(login, &settings).await.expect("saved");
    std::fs::write(&store.path, "{\"grant\": {\"server\": ").expect("written");
    assert_eq!(store.load(&settings).await, StoredLogin::default());
}

#[tokio::test]
#[cfg_attr(target_os = "macos", ignore = "the keyring there has another program")]
async fn rem_4_a_grant_in_the_keyring_is_in_no_file() {
    let home = tempfile::tempdir().expect("a directory");
    let bin = tempfile::tempdir().expect("a directory");
    let settings = with_keyring(bin.path());
    let store = LoginStore::new(home.path(), &ServerName::new("s").expect("a name"));
    let login = StoredLogin { grant: Some(grant()), ..StoredLogin::default() };
    let expected = StoredLogin { is_in_keyring: true, ..login.clone() };
    assert_eq!(store.save(login, &settings).await.expect("saved"), expected);
    assert_eq!(store.load(&settings).await, expected);
    let file = std::fs::read_to_string(home.path().join("tokens/s.json")).expect("there");
    assert!(!file.contains("hunter"), "{file}");
    // After the keyring is emptied, the user logs in again.
    std::fs::remove_file(bin.path().join("login-s.secret")).expect("removed");
    assert_eq!(store.load(&settings).await.grant, None);
}
