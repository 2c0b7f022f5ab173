use codexec_types::{Grants, Limits, ToolFilter, WorkingDirPolicy};

use super::*;

fn policy() -> Policy {
    Policy {
        languages: vec![Language::TypeScript, Language::Python],
        code_bytes: 20,
        input_bytes: 10,
        limits: Limits::DEFAULT,
        max_wall: Duration::from_secs(300),
        tools: ToolFilter::all(),
        grants: Grants::default(),
        files: WorkingDirPolicy {
            allowed: vec!["/a".into()],
            is_writable: true,
            ..WorkingDirPolicy::default()
        },
    }
}

fn narrowed(words: &[&str]) -> Policy {
    TokenScope::parse(words.iter().copied()).expect("scopes").narrow(&policy())
}

#[test]
fn http_3_a_scope_only_narrows_the_policy() {
    let narrow = narrowed(&["server:git*", "language:py", "files:none", "limit:timeout-ms=2000"]);
    assert!(narrow.tools.check("github", "x").is_ok());
    assert!(narrow.tools.check("time", "x").is_err());
    assert_eq!(narrow.languages, [Language::Python]);
    assert!(narrow.files.allowed.is_empty());
    assert_eq!(narrow.max_wall, Duration::from_secs(2));
    assert_eq!(narrow.limits.wall, Duration::from_secs(2));
    let wide = narrowed(&["limit:timeout-ms=4000000", "limit:tool-calls=4000000000", "files:read"]);
    assert_eq!(wide.max_wall, policy().max_wall);
    assert_eq!(wide.limits, policy().limits);
    assert!(!wide.files.is_writable);
}

#[test]
fn words_are_parsed_and_others_are_refused() {
    let parse = |words: &[&str]| TokenScope::parse(words.iter().copied());
    assert!(parse(&["read"]).expect("a scope").is_read_only());
    assert!(!parse(&["read", "write"]).expect("a scope").is_read_only());
    assert!(!parse(&[]).expect("a scope").reads_everyone());
    assert!(TokenScope::all().reads_everyone());
    let one = parse(&["toolset:compact"]).expect("a scope");
    assert!(one.allows_toolset("compact") && !one.allows_toolset("direct"));
    for wrong in ["", "admin", "toolset:", "language:cobol", "limit:timeout-ms=0", "limit:x=1"] {
        assert_eq!(parse(&[wrong]), Err(InvalidScope(wrong.to_owned())), "{wrong}");
    }
}
