use std::time::Duration;

use super::*;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

#[test]
fn http_1_the_first_token_is_private_and_stays() {
    let home = tempfile::tempdir().expect("a folder");
    let file = TokenFile::at(home.path());
    file.ensure_first().expect("made");
    let token = read(&file.first_path());
    assert_eq!(token.lines().count(), 1);
    assert!(token.starts_with("cxt_") && token.len() > 40, "{token}");
    let mode = std::fs::metadata(file.first_path()).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    file.ensure_first().expect("kept");
    assert_eq!(read(&file.first_path()), token);
    let tokens = LiveTokens::new(file.clone());
    let found = tokens.find(token.trim(), SystemTime::now()).expect("valid");
    assert_eq!(found.name.as_str(), FIRST_TOKEN);
    assert!(found.scope().expect("scopes").reads_everyone());
    assert!(tokens.find(&token.trim()[1..], SystemTime::now()).is_none());
    std::fs::set_permissions(file.first_path(), std::fs::Permissions::from_mode(0o644))
        .expect("changed");
    assert!(matches!(file.ensure_first(), Err(TokenError::Exposed(_))));
    std::fs::write(file.first_path(), "short\n").expect("written");
    std::fs::set_permissions(file.first_path(), std::fs::Permissions::from_mode(0o600))
        .expect("changed");
    assert!(matches!(file.ensure_first(), Err(TokenError::Malformed(_))));
}

#[test]
fn named_tokens_are_hashed_expire_and_can_be_revoked() {
    let home = tempfile::tempdir().expect("a folder");
    let file = TokenFile::at(home.path());
    let (now, later) = (SystemTime::now(), SystemTime::now() + Duration::from_secs(60));
    let scopes = ["read".to_owned(), "toolset:compact".to_owned()];
    let token = file.create("ci", &scopes, Some(later)).expect("made");
    assert!(!read(&file.list_path()).contains(&token), "only its hash is kept");
    let tokens = LiveTokens::new(file.clone());
    let found = tokens.find(&token, now).expect("valid");
    assert!(found.scope().expect("scopes").is_read_only());
    assert!(tokens.find(&token, later).is_none(), "expired");
    assert!(matches!(file.create("ci", &[], None), Err(TokenError::Taken(_))));
    assert!(matches!(file.create("first", &[], None), Err(TokenError::Taken(_))));
    assert!(matches!(file.create("a b", &[], None), Err(TokenError::Name(_))));
    let wrong = ["admin".to_owned()];
    assert!(matches!(file.create("x", &wrong, None), Err(TokenError::Scope(_))));
    file.revoke("ci").expect("revoked");
    assert!(tokens.find(&token, now).is_none(), "a running server notices");
    assert!(matches!(file.revoke("ci"), Err(TokenError::Unknown(_))));
    assert!(matches!(file.revoke("first"), Err(TokenError::First(_))));
}
