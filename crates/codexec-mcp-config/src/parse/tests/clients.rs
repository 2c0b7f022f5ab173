//! A realistic config file of each client.

use super::*;

#[test]
fn claude_code() {
    check(
        ConfigOwner::ClaudeCode,
        r#"{
  "numStartups": 7,
  "mcpServers": {
    "a": {"type": "stdio", "command": "${HOME}/x", "args": ["${NO:-d}", "${NO}", "$HOME", "${"], "env": {"K": "${HOME}", "N": 1}, "timeout": 5000},
    "b": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
          "oauth": {"clientId": "c", "callbackPort": 8080}, "headersHelper": "x.sh"},
    "c": {"url": "https://h/mcp"},
    "d": {"type": "sse", "url": "http://h/sse"},
    "e": {"type": "ws", "url": "ws://h"},
    "off": {"command": "x"}
  },
  "projects": {"/work/app": {"mcpServers": {"z": {"command": "z"}}, "disabledMcpServers": ["off"]}}
}"#,
        &[
            "a@4: /home/me/x d ${NO} $HOME ${ K=/home/me N=1 call 5s",
            "b@5: Http https://h/mcp Authorization=Bearer t0p OAuthConfig { client_id: Some(\"c\"), \
             client_secret: None, callback_port: Some(8080), scopes: [] }",
            "d@8: Sse http://h/sse",
            "off@10: x OFF it is disabled in that file",
        ],
        &[
            "4: (server \"a\": ${NO} is not set; set it, or write ${NO:-default})",
            "5: (server \"b\": `headersHelper` is a program that generates headers; codexec does not run it)",
            "7: server \"c\": `url` has no `type` beside it; write \"type\": \"http\" or \"type\": \"sse\"",
            "9: server \"e\": `type` is \"ws\", which is not supported; write stdio, http or sse",
        ],
    );
}

#[test]
fn claude_code_has_local_servers_in_its_user_file() {
    let text = r#"{"mcpServers": {"a": {"command": "user"}},
        "projects": {"/work/app": {"mcpServers": {"a": {"command": "local"}}},
                     "/work/other": {"mcpServers": {"c": {"command": "no"}}}}}"#;
    check_parsed(
        &read(ConfigOwner::ClaudeCode, ConfigScope::Local, text),
        &["a@2: local in /work/app"],
        &[],
    );
    check_parsed(&read(ConfigOwner::ClaudeCode, ConfigScope::User, text), &["a@1: user"], &[]);
}

/// THREAT[CFG-3]: a project's file does not approve itself, and neither does a settings file.
#[test]
fn cfg_3_an_unapproved_server_is_not_started() {
    let text =
        r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "c": {"command": "x"}}}"#;
    check_parsed(
        &read(ConfigOwner::ClaudeCode, ConfigScope::Project, text),
        &[
            "a@1: x in /work/app PENDING",
            "b@1: x in /work/app OFF it is refused in Claude Code's settings PENDING",
            "c@1: x in /work/app PENDING",
        ],
        &[],
    );
}

#[test]
fn approvals_are_read_from_claude_codes_files() {
    let mut approvals = ClaudeApprovals::default();
    let file = r#"{"projects": {"/p": {"enabledMcpjsonServers": ["a", "b"]}, "/q": {"enabledMcpjsonServers": ["c"]}}}"#;
    approvals.add_project(&ConfigDocument::new(file, ConfigOwner::ClaudeCode), Path::new("/p"));
    assert_eq!(approvals.approved_names().collect::<Vec<_>>(), ["a", "b"]);
    let settings = r#"{"enableAllProjectMcpServers": true, "enabledMcpjsonServers": ["x"], "disabledMcpjsonServers": ["a"]}"#;
    approvals.add_settings(&ConfigDocument::new(settings, ConfigOwner::ClaudeCode));
    approvals.add_settings(&ConfigDocument::new("{", ConfigOwner::ClaudeCode));
    assert_eq!(approvals.approved_names().collect::<Vec<_>>(), ["b"]);
    assert!(approvals.refusal_reason("a").is_some());
    assert_eq!(approvals.refusal_reason("x"), None);
}

#[test]
fn claude_desktop() {
    check(
        ConfigOwner::ClaudeDesktop,
        r#"{"globalShortcut": "", "mcpServers": {"fs": {"command": "npx", "args": ["-y", "fs", "${HOME}"]}}}"#,
        &["fs@1: npx -y fs ${HOME}"],
        &[],
    );
}

#[test]
fn cursor() {
    check(
        ConfigOwner::Cursor,
        r#"{"mcpServers": {
  "a": {"command": "${userHome}/x", "args": ["${workspaceFolder}", "${workspaceFolderBasename}", "${pathSeparator}", "${/}", "${what}"],
        "env": {"T": "${env:TOKEN}", "U": "${env:NO}"}, "envFile": "${workspaceFolder}/.env"},
  "b": {"url": "https://h/mcp", "headers": {"X": "${env:TOKEN}"}, "auth": {"CLIENT_ID": "i", "CLIENT_SECRET": "s", "scopes": ["r"]}}}}"#,
        &[
            "a@2: /home/me/x /work/app app / / ${what} A=1 B=two words T=t0p U=",
            "b@4: Http https://h/mcp X=t0p OAuthConfig { client_id: Some(\"i\"), client_secret: \
             Some(Plain(..)), callback_port: None, scopes: [\"r\"] }",
        ],
        &["2: (server \"a\": ${env:NO} is not set; set it where codexec is started)"],
    );
}

#[test]
fn vs_code() {
    check(
        ConfigOwner::VsCode,
        r#"{
  // asked once
  "inputs": [{"type": "promptString", "id": "key", "description": "Key", "password": true}],
  "servers": {
    "microsoft/playwright-mcp": {"type": "stdio", "command": "npx", "args": ["-y", "@playwright/mcp"], "cwd": "${workspaceFolder}",
      "env": {"A": "x", "B": 2, "C": null}, "dev": {"watch": "**"}, "envFile": "/nowhere"},
    "keyed": {"command": "x", "env": {"K": "${input:key}"}},
    "remote": {"type": "http", "url": "https://h/mcp", "headers": {"K": "${input:key}"}},
    "sock": {"type": "http", "url": "unix:///run/x.sock"},
    "fine": {"type": "sse", "url": "https://h/sse"},
  },
}"#,
        &[
            "microsoft_playwright-mcp@5: npx -y @playwright/mcp A=x B=2 in /work/app",
            "fine@10: Sse https://h/sse",
        ],
        &[
            "5: (server \"microsoft/playwright-mcp\": `envFile`: /nowhere cannot be read)",
            "5: (server \"microsoft/playwright-mcp\": it is called microsoft_playwright-mcp here)",
            "7: server \"keyed\": ${input:key} needs a value that only the client can ask you for; \
             name the server with `codexec servers add`, or write the value as ${env:NAME}",
            "8: server \"remote\": ${input:key} needs a value that only the client can ask you for; \
             name the server with `codexec servers add`, or write the value as ${env:NAME}",
            "9: server \"sock\": `url` has the scheme \"unix\"; use http or https",
        ],
    );
}

#[test]
fn copilot() {
    check(
        ConfigOwner::Copilot,
        r#"{"mcpServers": {"a": {"type": "local", "command": "x", "args": [], "env": {"T": "${TOKEN}"}, "tools": ["*"]},
  "b": {"type": "http", "url": "https://h", "headers": {}, "tools": ["get", "list"]}}}"#,
        &["a@1: x T=t0p only [\"*\"]", "b@2: Http https://h/ only [\"get\", \"list\"]"],
        &[],
    );
}

#[test]
fn windsurf() {
    check(
        ConfigOwner::Windsurf,
        r#"{"mcpServers": {
  "a": {"command": "x", "args": ["${env:TOKEN}"], "disabledTools": ["rm"]},
  "b": {"serverUrl": "https://h/sse", "headers": {"A": "1"}},
  "c": {"command": "x", "disabled": true}}}"#,
        &[
            "a@2: x t0p not [\"rm\"]",
            "b@3: Http https://h/sse A=1",
            "c@4: x OFF it is disabled in that file",
        ],
        &[],
    );
}

#[test]
fn zed() {
    check(
        ConfigOwner::Zed,
        r#"{
  "theme": "One",
  "context_servers": {
    "a": {"source": "custom", "command": "x", "args": ["y"], "env": {}, "timeout": 30},
    "old": {"command": {"path": "p", "args": ["q"], "env": {"A": "1"}}, "settings": {}},
    "ext": {"source": "extension", "settings": {"k": 1}},
    "far": {"url": "https://h/mcp", "headers": {"K": "v"}},
    "off": {"enabled": false, "command": "x"}
  }
}"#,
        &[
            "a@4: x y call 30s",
            "old@5: p q A=1",
            "far@7: Http https://h/mcp K=v",
            "off@8: x OFF it is disabled in that file",
        ],
        &["6: server \"ext\": an extension of Zed starts it, so its command is not known; name \
           the server with `codexec servers add`"],
    );
}

#[test]
fn codex() {
    check(
        ConfigOwner::Codex,
        r#"
model = "gpt"
[mcp_servers.a]
command = "npx"
args = ["-y", "x"]
env = { "K" = "v" }
env_vars = ["TOKEN", { name = "HOME", source = "local" }, "NO"]
cwd = "/tmp"
startup_timeout_sec = 20
tool_timeout_sec = 2.5
enabled_tools = ["get"]
disabled_tools = ["put"]
[mcp_servers.b]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X" = "1" }
env_http_headers = { "Y" = "TOKEN", "Z" = "NO" }
scopes = ["r"]
[mcp_servers.c]
command = "x"
enabled = false
[mcp_servers.d]
startup_timeout_ms = 5
"#,
        &[
            "a@3: npx -y x K=v TOKEN=<env TOKEN> HOME=<env HOME> in /tmp only [\"get\"] not [\"put\"] \
             start 20s call 2.5s",
            "b@13: Http https://h/mcp X=1 Authorization=Bearer t0p Y=<env TOKEN> OAuthConfig { \
             client_id: None, client_secret: None, callback_port: None, scopes: [\"r\"] }",
            "c@19: x OFF it is disabled in that file",
        ],
        &[
            "13: (server \"b\": $NO is not set; set it where codexec is started)",
            "22: server \"d\": `command` is missing or empty; write the program that starts it",
        ],
    );
}

#[test]
fn gemini() {
    check(
        ConfigOwner::Gemini,
        r#"{"mcp": {"excluded": ["off"]}, "mcpServers": {
  "a": {"command": "x", "args": ["$TOKEN/${TOKEN}", "$NO|", "$1 $"], "cwd": "/c", "timeout": 600000, "trust": true, "includeTools": ["a"], "excludeTools": ["b"]},
  "b": {"httpUrl": "https://h/mcp"},
  "c": {"url": "https://h/sse"},
  "off": {"command": "x"}}}"#,
        &[
            "a@2: x t0p/t0p | $1 $ in /c only [\"a\"] not [\"b\"] call 600s",
            "b@3: Http https://h/mcp",
            "c@4: Sse https://h/sse",
            "off@5: x OFF it is disabled in that file",
        ],
        &["2: (server \"a\": $NO is not set; set it where codexec is started)"],
    );
    check(
        ConfigOwner::Gemini,
        r#"{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}"#,
        &["a@1: x", "b@1: x OFF it is disabled in that file"],
        &[],
    );
}

#[test]
fn opencode() {
    check(
        ConfigOwner::OpenCode,
        r#"{"$schema": "https://opencode.ai/config.json", "mcp": {
  "a": {"type": "local", "command": ["bun", "x", "y"], "environment": {"T": "{env:TOKEN}", "S": "{file:~/.secret}", "N": "{env:NO}"}, "enabled": true, "timeout": 5000},
  "b": {"type": "remote", "url": "https://h/mcp", "headers": {"A": "Bearer {file:~/.secret}"}, "oauth": false},
  "c": {"type": "local", "command": ["x"], "enabled": false}}}"#,
        &[
            "a@2: bun x y T=t0p S=s3cret N= start 5s",
            "b@3: Http https://h/mcp A=Bearer s3cret",
            "c@4: x OFF it is disabled in that file",
        ],
        &["2: (server \"a\": {env:NO} is not set; set it where codexec is started)"],
    );
}

#[test]
fn cline() {
    check(
        ConfigOwner::Cline,
        r#"{"mcpServers": {
  "a": {"command": "x", "disabled": false, "autoApprove": ["get"], "timeout": 60, "env": {"T": "${env:TOKEN}"}},
  "b": {"url": "https://h/sse"},
  "c": {"type": "streamableHttp", "url": "https://h/mcp"},
  "d": {"transportType": "sse", "url": "https://h/sse", "disabled": true}}}"#,
        &[
            "a@2: x T=t0p call 60s",
            "b@3: Sse https://h/sse",
            "c@4: Http https://h/mcp",
            "d@5: Sse https://h/sse OFF it is disabled in that file",
        ],
        &[],
    );
}

#[test]
fn goose() {
    check(
        ConfigOwner::Goose,
        "
GOOSE_PROVIDER: openai
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    type: builtin
    timeout: 300
  github:
    type: stdio
    cmd: npx
    args: [-y, gh]
    envs:
      A: '1'
    env_keys: [TOKEN, GH]
    timeout: 300
    enabled: true
    available_tools: []
  far:
    type: streamable_http
    uri: https://h/mcp
    headers: {K: v}
    available_tools: [get]
    enabled: false
  bad:
    type: stdio
    enabled: true
",
        &[
            "github@10: npx -y gh A=1 TOKEN=<env TOKEN> call 300s",
            "far@20: Http https://h/mcp K=v only [\"get\"] OFF it is disabled in that file",
        ],
        &[
            "10: (server \"github\": GH needs a value that is in goose's keyring; set it where codexec \
             is started)",
            "26: server \"bad\": `cmd` is missing or empty; write the program that starts it",
        ],
    );
}

#[test]
fn the_shared_folder() {
    check(ConfigOwner::Shared, r#"{"mcpServers": {"a": {"command": "x"}}}"#, &["a@1: x"], &[]);
    check(
        ConfigOwner::Shared,
        r#"{"command": "x", "args": ["${TOKEN}"]}"#,
        &["lone@1: x t0p"],
        &[],
    );
    check(ConfigOwner::Shared, "{}", &[], &[]);
}

#[test]
fn a_file_named_by_the_user_must_have_servers() {
    let named = |text: &str| read(ConfigOwner::Named, ConfigScope::Named, text);
    check_parsed(
        &named(r#"{"mcpServers": {"a": {"url": "http://h"}}}"#),
        &["a@1: Http http://h/"],
        &[],
    );
    for text in ["[]", "{}", r#"{"servers": {}}"#] {
        check_parsed(&named(text), &[], &["1: it has no `mcpServers`"]);
        assert!(named(text).is_broken);
    }
    check_parsed(&named("\n{"), &[], &["2: it is not JSON: it ends inside an object, at column 2"]);
}
