use super::*;

fn host(text: &str) -> Option<String> {
    IndexHost::parse_canonical(text, 443).map(|host| host.to_string())
}

#[test]
fn pkg_2_a_host_has_one_spelling() {
    assert_eq!(host("Files.Example.ORG").as_deref(), Some("files.example.org:443"));
    assert_eq!(host("a:8443").as_deref(), Some("a:8443"));
    assert_eq!(host("[::1]:80").as_deref(), Some("[::1]:80"));
    assert_eq!(host("[::1]").as_deref(), Some("[::1]:443"));
    for bad in [
        "", ":80", "a:", "a:080", "a:+80", "a:99999", "a:80:80", "a.", ".a", "a..b", "a b", "a/b",
        "user@a", "a%00", "a\0", "a\r\nb", "[::1", "[a]:80", "::1", "a,b", "xn--é",
    ] {
        assert_eq!(host(bad), None, "{bad:?}");
    }
}

#[test]
fn an_index_is_shown_without_its_password() {
    let index = PackageIndex::parse("https://me:secret@example.org/simple").expect("an index");
    assert_eq!(index.to_string(), "https://example.org/simple");
    assert_eq!(format!("{index:?}"), "Index(https://example.org/simple)");
    assert!(index.has_password());
    assert_eq!(index.for_installer(), "https://me:secret@example.org/simple");
    assert_eq!(index.host().to_string(), "example.org:443");
    let error = PackageIndex::parse("ftp://me:secret@example.org/").expect_err("no index");
    assert!(!error.to_string().contains("secret"), "{error}");
    for bad in ["", "example.org", "file:///srv", "https://", "https://a/?q=1", "https://a/#x"] {
        assert!(PackageIndex::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn no_proxy_entries_match_domain_suffixes() {
    let host = IndexHost::parse_canonical("pypi.corp.example", 443).expect("a host");
    for list in ["corp.example", ".corp.example", "*.corp.example", "*", "x, pypi.corp.example:443"]
    {
        assert!(host.is_listed_in(list), "{list}");
    }
    for list in ["", "example.corp", "ypi.corp.example", "pypi.corp.example:80", "i.corp.example"] {
        assert!(!host.is_listed_in(list), "{list}");
    }
}
