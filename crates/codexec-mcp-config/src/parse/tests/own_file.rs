//! codexec's own file: strict, and it also sets options for servers of other files.

use super::*;

fn own(text: &str) -> ParsedConfig {
    read(ConfigOwner::Codexec, ConfigScope::Own, text)
}

#[test]
fn servers_and_secrets() {
    let parsed = own(r#"
[limits]
memory-mib = 64
[servers.a]
command = "~/bin/x"
args = ["${TOKEN}"]
env = { A = "env:TOKEN", B = "file:~/.secret", C = "keyring:c", D = "${TOKEN}", E = "plain" }
cwd = "~/w"
[servers.b]
url = "https://h/mcp"
headers = { Authorization = "env:TOKEN" }
oauth = { client-id = "i", client-secret = "keyring:s", callback-port = 1, scopes = ["r", "w"] }
[servers.c]
type = "sse"
url = "https://h/sse"
"#);
    check_parsed(
        &parsed,
        &[
            "a@4: /home/me/bin/x t0p A=<env TOKEN> B=<file /home/me/.secret> C=<keyring c> D=t0p \
             E=plain in /home/me/w",
            "b@9: Http https://h/mcp Authorization=<env TOKEN> OAuthConfig { client_id: Some(\"i\"), \
             client_secret: Some(Keyring(\"s\")), callback_port: Some(1), scopes: [\"r\", \"w\"] }",
            "c@13: Sse https://h/sse",
        ],
        &[],
    );
}

#[test]
fn options_apply_to_servers_of_other_files() {
    let others = read(
        ConfigOwner::Codex,
        ConfigScope::User,
        "[mcp_servers.a]\ncommand = \"x\"\nenabled_tools = [\"a\"]\ndisabled_tools = [\"b\"]\n\
         [mcp_servers.b]\ncommand = \"x\"\n[mcp_servers.c]\ncommand = \"x\"\nenabled = false\n",
    );
    let own = own("[servers.a]\nenabled-tools = ['get_*']\ndisabled-tools = ['get_x']\n\
         startup-timeout-ms = 5\ntimeout-ms = 6\nmax-concurrency = 7\ntrust = 'ask'\n\
         [servers.b]\nenabled = false\n[servers.c]\nenabled = true\n[servers.nobody]\ntrust = 'auto'\n");
    check_parsed(
        &merge_configs(vec![others, own]),
        &[
            "a@1: x only [\"get_*\"] not [\"b\", \"get_x\"] start 5ms call 6ms x7 ask",
            "b@5: x OFF it is disabled in /home/me/.codexec/config.toml:8",
            "c@7: x",
        ],
        &["12: (server \"nobody\": no file defines this server; add its `command` or `url`, or \
           remove the entry)"],
    );
}

/// THREAT[CFG-4]: a misspelt restriction leaves nothing open.
#[test]
fn cfg_4_an_invalid_entry_disables_its_server() {
    let keys = "command, args, env, cwd, url, type, headers, oauth, enabled, enabled-tools, \
                disabled-tools, startup-timeout-ms, timeout-ms, max-concurrency, trust";
    for (line, why) in [
        (
            "disabled-tool = ['x']",
            format!("`disabled-tool` is not a known key; the keys are {keys}"),
        ),
        ("disabled-tools = 'x'", "`disabled-tools` must be a list of strings, 1000 at most".into()),
        ("enabled = 'no'", "`enabled` must be true or false".into()),
        ("timeout-ms = 0", "`timeout-ms` must be a number of 1 ms to 1 h".into()),
        ("timeout-ms = 3600001", "`timeout-ms` must be a number of 1 ms to 1 h".into()),
        ("startup-timeout-ms = 'x'", "`startup-timeout-ms` must be a number of 1 ms to 1 h".into()),
        ("max-concurrency = 0", "`max-concurrency` must be 1 to 1000".into()),
        ("max-concurrency = 1001", "`max-concurrency` must be 1 to 1000".into()),
        ("trust = 'yes'", "`trust` must be \"auto\", \"ask\" or \"manual\"".into()),
    ] {
        let other = program("a", "x", ConfigOwner::Cursor, None);
        let own = own(&format!("[servers.a]\n{line}"));
        check_parsed(
            &merge_configs(vec![other, own]),
            &["a@1: x OFF it is disabled in /home/me/.codexec/config.toml:1"],
            &[&format!("2: server \"a\": {why}")],
        );
    }
}

#[test]
fn a_relative_secret_file_is_an_error() {
    let parsed = own("[servers.a]\ncommand = 'x'\nenv = { A = 'file:x' }");
    let why = "3: server \"a\": `env` has a `file:` that is not an absolute path; start it with `/` or `~/`";
    check_parsed(&parsed, &[], &[why]);
}
