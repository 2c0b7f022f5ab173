//! The formats of secrets.

use std::sync::LazyLock;

use regex::Regex;

use super::SecretRange;

struct MaskRule {
    kind: &'static str,
    /// Group 1 is the secret.
    pattern: Regex,
    /// An additional check, for formats that other texts have, too.
    is_secret: fn(&str) -> bool,
}

/// A quick test: every text with a secret matches this.
#[expect(clippy::unwrap_used, reason = "a constant; the tests run it")]
static HINT: LazyLock<Regex> = LazyLock::new(|| {
    let exact = "AKIA|ASIA|AIza|ya29|GOCSPX|gh[pousr]_|github_pat|gl[a-z]{2,4}-|xox[a-z]-|xapp-\
                 |hooks\\.slack|k_live|k_test|whsec_|sk-|npm_|pypi-|hf_|SG\\.|do[opr]_v1|dapi|shp\
                 |eyJ|PRIVATE KEY|AccountKey|://|:AA|SK[0-9a-f]";
    let any_case =
        "bearer|basic|passw|pwd|secret|token|api.?key|access.?key|private.?key|credential";
    Regex::new(&format!("{exact}|(?i:{any_case})")).unwrap()
});

static RULES: LazyLock<Vec<MaskRule>> = LazyLock::new(|| {
    let any = |_: &str| true;
    vec![
        rule("aws-key-id", r"START((?:AKIA|ASIA)[A-Z2-7]{16})\b", any),
        rule("google-key", r"START(AIza[0-9A-Za-z_-]{35})", any),
        rule("google-token", r"START(ya29\.[0-9A-Za-z_-]{20,})", any),
        rule("google-secret", r"START(GOCSPX-[0-9A-Za-z_-]{20,})", any),
        rule(
            "github-token",
            r"START(gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{22,})",
            any,
        ),
        rule(
            "gitlab-token",
            r"START(gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent)-[0-9A-Za-z_-]{20,})",
            is_mixed,
        ),
        rule(
            "slack-token",
            r"START(xox[abeoprs]-[0-9A-Za-z-]{10,}|xapp-\d-[0-9A-Za-z-]{10,})",
            has_digit,
        ),
        rule(
            "slack-webhook",
            r"hooks\.slack\.com/services/(T[0-9A-Z]{6,}/B[0-9A-Z]{6,}/[0-9A-Za-z]{16,})",
            any,
        ),
        rule(
            "stripe-key",
            r"START([sr]k_(?:live|test)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z]{24,})",
            any,
        ),
        rule("anthropic-key", r"START(sk-ant-[0-9A-Za-z_-]{20,})", any),
        rule("openai-key", r"START(sk-[0-9A-Za-z_-]{20,})", is_mixed),
        rule("npm-token", r"START(npm_[0-9A-Za-z]{36})", any),
        rule("pypi-token", r"START(pypi-[0-9A-Za-z_-]{50,})", any),
        rule("huggingface-token", r"START(hf_[0-9A-Za-z]{30,})", any),
        rule("sendgrid-key", r"START(SG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,})", any),
        rule("twilio-key", r"START(SK[0-9a-f]{32})\b", any),
        rule("digitalocean-token", r"START(do[opr]_v1_[0-9a-f]{64})", any),
        rule("databricks-token", r"START(dapi[0-9a-f]{32})\b", any),
        rule("shopify-token", r"START(shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32})", any),
        rule("telegram-token", r"START(\d{8,10}:AA[0-9A-Za-z_-]{33})", any),
        rule("azure-key", r"AccountKey=([0-9A-Za-z+/]{40,}={0,2})", any),
        rule("jwt", r"START(eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,})", any),
        rule("bearer-token", r"(?i)bearer\s+([0-9a-z._~+/=-]{16,})", has_digit),
        rule("basic-auth", r"(?i)authorization\W{1,6}basic\s+([0-9a-z+/]{8,}={0,2})", any),
        rule("password", r#"://[^\s/:@"'\\<>]{0,256}:([^\s/@"'\\<>]{1,256})@"#, is_not_placeholder),
        rule("secret", ASSIGNED, has_digit),
        rule("secret", EXPORTED, has_digit),
    ]
});

/// The start of a word. A word may also follow `\n` in a JSON text, which ends with a letter.
const START: &str = r"(?:^|[^0-9A-Za-z]|\\[nrtbf])";

/// `password = "..."`, `"api_key": "..."`, also within a JSON text.
const ASSIGNED: &str = r#"(?ix)
    (?: passw(?:or)?d | passphrase | pwd | secret | token | api_?-?key | access_?-?key
      | private_?-?key | credential ) s?
    \\?["']? \s* (?: = | : | => ) \s* [a-z]{0,2} \\?["']
    ( [^\s"'\\]{8,} ) \\?["']"#;

/// `DB_PASSWORD=...`, as in a shell script or a settings file.
const EXPORTED: &str = r#"(?x)
    (?: PASSW(?:OR)?D | PASSPHRASE | SECRET | TOKEN | API_?KEY | ACCESS_?KEY
      | PRIVATE_?KEY ) [A-Z0-9_]{0,64} =
    ( [0-9A-Za-z_~+/=.!@%^-]{8,} )"#;

#[expect(clippy::unwrap_used, reason = "constants; the tests run them all")]
fn rule(kind: &'static str, pattern: &str, is_secret: fn(&str) -> bool) -> MaskRule {
    MaskRule { kind, pattern: Regex::new(&pattern.replace("START", START)).unwrap(), is_secret }
}

pub(super) fn may_have_any(text: &str) -> bool {
    HINT.is_match(text)
}

pub(super) fn find(text: &str) -> Vec<SecretRange> {
    let mut found = Vec::new();
    for MaskRule { kind, pattern, is_secret } in RULES.iter() {
        for captures in pattern.captures_iter(text) {
            let Some(secret) = captures.get(1) else { continue };
            if is_secret(secret.as_str()) {
                found.push(SecretRange { start: secret.start(), end: secret.end(), kind });
            }
        }
    }
    found
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

/// Returns true for a random string: unlike names, it contains both capitals and digits.
fn is_mixed(text: &str) -> bool {
    has_digit(text) && text.bytes().any(|b| b.is_ascii_uppercase())
}

/// Returns false for a placeholder: `{password}`, `$PASSWORD`, `***`.
fn is_not_placeholder(text: &str) -> bool {
    !text.starts_with(['{', '$', '%', '*', '[']) && text.bytes().any(|b| b.is_ascii_alphanumeric())
}
