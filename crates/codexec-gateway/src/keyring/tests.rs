use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use codexec_mcp_config::SecretSource;

use super::*;
use crate::{Warden, secret::resolve_secret};

/// A fake keyring program that stores its secrets in files.
const SCRIPT: &str = r#"#!/bin/sh
dir=$(dirname "$0")
case "$1" in
  store) [ "$3 $4 $5" = "service codexec account" ] && cat > "$dir/$6.secret" ;;
  lookup) [ "$2 $3 $4" = "service codexec account" ] && cat "$dir/$5.secret" 2>/dev/null ;;
  *) exit 2 ;;
esac
"#;

/// Returns settings that use the fake keyring.
pub(crate) fn with_keyring(dir: &Path) -> GatewaySettings {
    let path = dir.join("secret-tool");
    fs::write(&path, SCRIPT).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made a program");
    let path = format!("{}:/usr/bin:/bin", dir.display());
    GatewaySettings::new(vec![("PATH".to_owned(), path)], Warden::none())
}

#[tokio::test]
#[cfg_attr(target_os = "macos", ignore = "the keyring there has another program")]
async fn a_stored_secret_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let settings = with_keyring(dir.path());
    let secret = SecretSource::Keyring("key".to_owned());
    let missing = resolve_secret(&secret, &settings).await.expect_err("nothing there").to_string();
    assert!(missing.starts_with("the keyring has no \"key\": "), "{missing}");
    store("key", "hunter2", &settings).await.expect("stored");
    assert_eq!(resolve_secret(&secret, &settings).await, Ok("hunter2".to_owned()));
}

#[tokio::test]
async fn without_a_keyring_calls_fail() {
    let settings =
        GatewaySettings::new(vec![("PATH".to_owned(), "/nowhere".to_owned())], Warden::none());
    assert!(store("key", "hunter2", &settings).await.is_err());
    assert!(lookup("key", &settings).await.is_err());
}
