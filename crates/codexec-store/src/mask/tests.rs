use codexec_types::{GuestOutput, OutputStream};

use super::*;

/// The secrets are built at run time, so that secret scanners find none in this file.
#[test]
fn secrets_of_known_formats_are_masked() {
    let a = |n: usize| "aB3".repeat(n.div_ceil(3)).chars().take(n).collect::<String>();
    check(&format!("id = 'AKIA{}'", "ABCDEFGH23456722"), "id = '[masked:aws-key-id]'");
    check(&format!("AIza{}", a(35)), "[masked:google-key]");
    check(&format!("ya29.{}", a(40)), "[masked:google-token]");
    check(&format!("GOCSPX-{}", a(28)), "[masked:google-secret]");
    for kind in ["ghp", "gho", "ghu", "ghs", "ghr"] {
        check(&format!("{kind}_{} x", a(36)), "[masked:github-token] x");
    }
    check(&format!("github_pat_{}", a(82)), "[masked:github-token]");
    check(&format!("glpat-{}", a(20)), "[masked:gitlab-token]");
    check(&format!("xoxb-1234-{}", a(24)), "[masked:slack-token]");
    check(
        &format!("https://hooks.slack.com/services/T0123456/B0123456/{}", a(24)),
        "https://hooks.slack.com/services/[masked:slack-webhook]",
    );
    check(&format!("sk_live_{}", a(24)), "[masked:stripe-key]");
    check(&format!("rk_test_{}", a(24)), "[masked:stripe-key]");
    check(&format!("whsec_{}", a(32)), "[masked:stripe-key]");
    check(&format!("sk-ant-api03-{}", a(80)), "[masked:anthropic-key]");
    check(&format!("sk-proj-{}", a(48)), "[masked:openai-key]");
    check(&format!("npm_{}", a(36)), "[masked:npm-token]");
    check(&format!("pypi-{}", a(60)), "[masked:pypi-token]");
    check(&format!("hf_{}", a(34)), "[masked:huggingface-token]");
    check(&format!("SG.{}.{}", a(22), a(43)), "[masked:sendgrid-key]");
    check(&format!("SK{}", "0123abcd".repeat(4)), "[masked:twilio-key]");
    check(&format!("dop_v1_{}", "0123abcd".repeat(8)), "[masked:digitalocean-token]");
    check(&format!("dapi{}", "0123abcd".repeat(4)), "[masked:databricks-token]");
    check(&format!("shpat_{}", "0123abcd".repeat(4)), "[masked:shopify-token]");
    check(&format!("123456789:AA{}", a(33)), "[masked:telegram-token]");
    check(&format!("AccountKey={}==;", a(86)), "AccountKey=[masked:azure-key];");
    check(&format!("eyJ{0}.eyJ{0}.{0}", a(20)), "[masked:jwt]");
    check(
        &format!("Authorization: Bearer {}", a(20)),
        "Authorization: Bearer [masked:bearer-token]",
    );
    check("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [masked:basic-auth]");
    check("postgres://me:pa55@host/db", "postgres://me:[masked:password]@host/db");
    check("password = \"hunter2hunter2\"", "password = \"[masked:secret]\"");
    check("{\"api_key\":\"0a1b2c3d4e\"}", "{\"api_key\":\"[masked:secret]\"}");
    check(r#""{\"Token\": \"0a1b2c3d4e\"}""#, r#""{\"Token\": \"[masked:secret]\"}""#);
    check("client_secret: '0a1b2c3d4e'", "client_secret: '[masked:secret]'");
    check("export DB_PASSWORD=hunter2hunter2\n", "export DB_PASSWORD=[masked:secret]\n");
    check("AWS_SECRET_ACCESS_KEY=0a1b/2c3d+4e", "AWS_SECRET_ACCESS_KEY=[masked:secret]");
}

#[test]
fn private_keys_are_masked_from_their_first_line_to_their_last() {
    let key = |kind: &str| format!("-----BEGIN {kind}-----\nMIIB\nVgIB\n-----END {kind}-----");
    for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"] {
        check(&format!("k = '{}'\nx", key(kind)), "k = '[masked:private-key]'\nx");
    }
    let json = serde_json::to_string(&key("PRIVATE KEY")).unwrap();
    check(&json, "\"[masked:private-key]\"");
    let two = format!("{0} and {0}", key("PRIVATE KEY"));
    check(&two, "[masked:private-key] and [masked:private-key]");
    check("-----BEGIN PRIVATE KEY-----\nMIIB", "[masked:private-key]");
    let long = format!("-----BEGIN PRIVATE KEY-----{}", "ä".repeat(9_000));
    assert!(mask(&long).ends_with('ä'), "an unterminated key does not mask the whole text");
    for other in ["PUBLIC KEY", "CERTIFICATE"] {
        stays(&key(other));
    }
    stays("-----END PRIVATE KEY-----");
}

#[test]
fn texts_that_only_look_like_secrets_stay() {
    stays("print('hello')");
    stays("password = os.environ['PASSWORD']");
    stays("password = getpass.getpass()");
    stays("password: str = ''");
    stays("{\"password\":{\"type\":\"string\"}}");
    stays("token = tokens[0]");
    stays("tokenizer = \"bert-base-uncased-v2\"");
    stays("secret = 'the answer'");
    stays("max_tokens = 4096");
    stays("TOKEN_LIMIT=4096");
    stays("sk-learn-contrib-and-other-names");
    stays("task-ABC123 risk-free-and-more-of-it-2026X");
    stays("AKIA is a prefix; AKIAIOSFODNN7 is short");
    stays("https://example.com:8080/path?x=1@2");
    stays("https://user@example.com/");
    stays("postgres://me:{password}@host/db");
    stays("postgres://me:$PASSWORD@host/db");
    stays("postgres://me:***@host/db");
    stays("eyJhbGciOiJIUzI1NiJ9");
    stays("the bearer of bad news, and a bearer of responsibilities");
    stays("import hf_utilities; npm_config_registry; dapi.example");
    stays("exec_0123456789abcdef0123456789abcdef sess_0123456789abcdef0123456789abcdef");
    stays("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
}

#[test]
fn masked_json_is_valid_json() {
    let secret = format!("ghp_{}", "aB3".repeat(12));
    check(r#""a\nghp_AAAA\n""#, r#""a\nghp_AAAA\n""#);
    check(&format!(r#""a\n{secret}\n""#), r#""a\n[masked:github-token]\n""#);
    let value = serde_json::json!({
        "password": "hunter2\"hunter2", "key": [secret, {"u": "http://a:b1@c"}],
        "text": "token: \"abc123def456\"\\n",
    });
    let masked = mask(&value.to_string()).into_owned();
    let parsed: serde_json::Value = serde_json::from_str(&masked).unwrap();
    assert_eq!(parsed["key"][0], "[masked:github-token]");
    assert_eq!(parsed["key"][1]["u"], "http://a:[masked:password]@c");
}

#[test]
fn masked_output_keeps_its_streams_apart() {
    let secret = format!("ghp_{}", "aB3".repeat(12));
    let mut written = GuestOutput::default();
    written.push(OutputStream::Err, "warn ");
    written.push(OutputStream::Out, &format!("key {secret} "));
    written.push(OutputStream::Err, &secret);
    written.push(OutputStream::Out, " end ");
    // A secret that is split between both streams.
    written.push(OutputStream::Err, &secret[..10]);
    written.push(OutputStream::Out, &secret[10..]);
    written.push(OutputStream::Err, "!");
    let (text, errors) = mask_written(&written);
    let masked = GuestOutput::new(text, errors);
    let mask = "[masked:github-token]";
    assert_eq!(masked.stderr(), format!("warn {mask}!"));
    assert_eq!(masked.stdout(), format!("key {mask}  end {mask}"));
}

/// Each of these texts would take hours in quadratic time.
#[test]
fn hostile_texts_take_linear_time() {
    for text in
        ["eyJ", "-----BEGIN PRIVATE KEY-----", "sk-", "://a:", "password='", "AKIA", "TOKEN", "A_"]
    {
        let text = text.repeat(300_000);
        assert!(mask(&text).len() <= text.len() * 2);
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(mask(text), expected);
}

#[track_caller]
fn stays(text: &str) {
    assert_eq!(mask(text), text);
}
