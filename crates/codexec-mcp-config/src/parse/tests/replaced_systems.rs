//! The config files of the systems that codexec replaces.

use super::*;

const PROXY: &str = r#"{
  "listen": "127.0.0.1:8080", "enable_code_execution": true,
  "mcpServers": [
    {"name": "gh", "url": "https://h/mcp", "protocol": "http", "headers": {"A": "Bearer ${env:TOKEN}"}, "enabled": true,
     "oauth": {"client_id": "i", "scopes": ["r"]}, "disabled_tools": ["drop_*"]},
    {"name": "fs", "command": "npx", "args": ["-y", "fs", "${env:NO}"], "env": {"K": "${env:TOKEN}"}, "protocol": "stdio",
     "working_dir": "/srv", "enabled_tools": ["read"], "init_timeout": "1m30s", "max_concurrent_requests": 3},
    {"name": "held", "command": "x", "quarantined": true, "protocol": "auto"},
    {"name": "off", "command": "x", "enabled": false},
    {"name": "old", "url": "https://h/sse", "protocol": "sse", "trust_mode": "scan"},
    {"name": "stream", "url": "https://h/s", "protocol": "streamable-http", "skip_quarantine": true},
    {"name": "auto", "url": "https://h/a", "protocol": "auto", "trust_mode": "manual"}
  ]
}"#;

const SERVERS: [&str; 7] = [
    "gh@4: Http https://h/mcp A=Bearer t0p OAuthConfig { client_id: Some(\"i\"), client_secret: \
     None, callback_port: None, scopes: [\"r\"] } not [\"drop_*\"]",
    "fs@6: npx -y fs  K=t0p in /srv only [\"read\"] start 90s x3",
    "held@8: x manual",
    "off@9: x OFF it is disabled in that file",
    "old@10: Sse https://h/sse ask",
    "stream@11: Http https://h/s auto",
    "auto@12: Http https://h/a manual",
];
const UNSET: &str = "6: (server \"fs\": ${env:NO} is not set; set it where codexec is started)";

#[test]
fn mcpproxy_has_a_list() {
    check(ConfigOwner::Mcpproxy, PROXY, &SERVERS, &[UNSET]);
}

/// MCPProxy's format is detected in a file named with `--mcp-config`.
#[test]
fn a_list_in_a_named_file_is_mcpproxys() {
    check_parsed(&read(ConfigOwner::Named, ConfigScope::Named, PROXY), &SERVERS, &[UNSET]);
}

#[test]
fn a_list_is_invalid_for_other_clients() {
    let text = r#"{"mcpServers": [{"name": "a", "command": "x"}]}"#;
    check(ConfigOwner::Cursor, text, &[], &["1: `mcpServers` is not an object"]);
}

#[test]
fn invalid_entries_of_mcpproxy() {
    check(
        ConfigOwner::Mcpproxy,
        r#"{"mcpServers": [
{"command": "x"},
7,
{"name": 7, "command": "x"},
{"name": "../a", "command": "x"},
{"name": "b", "command": "x", "env": {"T": "${keyring:gh}"}},
{"name": "c", "url": "https://h", "protocol": "ws"},
{"name": "d", "command": "x", "quarantined": "yes"},
{"name": "e", "command": "x", "trust_mode": "sometimes"},
{"name": "f", "command": "x", "max_concurrent_requests": 1001},
{"name": "g", "command": "x", "max_concurrent_requests": 0, "init_timeout": "soon"},
{"name": "h", "command": "./x"},
{"name": "ok", "command": "x", "init_timeout": "99h"}]}"#,
        &["ok@13: x"],
        &[
            "2: a server has no `name`; add one",
            "3: a server has no `name`; add one",
            "4: a server has no `name`; add one",
            "5: server name \"../a\" is not allowed; use 1 to 64 of the characters A-Z a-z 0-9 _ -",
            "6: server \"b\": ${keyring:gh} is in MCPProxy's own keyring, which is not read here; \
             write the value as ${env:NAME} there, or name the server with `codexec servers add`",
            "7: server \"c\": `protocol` is \"ws\", which is not supported; write stdio, http or sse",
            "8: server \"d\": `quarantined` must be true or false",
            "9: server \"e\": `trust_mode` must be \"auto\", \"scan\" or \"manual\"",
            "10: server \"f\": `max_concurrent_requests` must be 0 to 1000",
            "11: server \"g\": `init_timeout` must be a number of 1 ms to 1 h",
            "12: server \"h\": `command` is a relative path, and the server starts in your \
             home directory; write an absolute path, or set the directory with `working_dir`",
        ],
    );
}

#[test]
fn a_list_has_a_bound() {
    let entry = r#"{"name": "a", "command": "x"}"#;
    let many = vec![entry; 1_002].join(",");
    let parsed =
        read(ConfigOwner::Mcpproxy, ConfigScope::User, &format!("{{\"mcpServers\": [{many}]}}"));
    assert_eq!(parsed.servers.len(), 1_000);
    let problems: Vec<&str> = parsed.problems.iter().map(|p| p.what.as_str()).collect();
    assert_eq!(problems, ["2 more servers are ignored; at most 1000 are read from one file"]);
    let nameless = vec!["{}"; 5_000].join(",");
    let parsed = read(
        ConfigOwner::Mcpproxy,
        ConfigScope::User,
        &format!("{{\"mcpServers\": [{nameless}]}}"),
    );
    assert_eq!((parsed.servers.len(), parsed.problems.len()), (0, 101));
}

/// MCP Server Code Execution Mode reads its one named file as JSON or TOML.
#[test]
fn a_named_file_may_be_toml() {
    let text = "[mcp_servers.a]\ncommand = 'x'\nargs = ['${TOKEN}']\n";
    for text in [text.to_owned(), text.replace("mcp_servers", "mcpServers")] {
        let (path, approvals) = (Path::new("/f.TOML"), ClaudeApprovals::default());
        let world = ConfigEnv {
            home: None,
            here: None,
            variable: &variable,
            text_of: &text_of,
            is_own_program: &|_| false,
        };
        let (client, reach) = (ConfigOwner::Named, ConfigScope::Named);
        let project_servers = ProjectServers::Ask;
        let scope = ConfigSource {
            source: path,
            client,
            reach,
            approvals: &approvals,
            project_servers,
            is_guest_writable: false,
            world,
        };
        check_parsed(
            &parse_config(&ConfigDocument::from_file(path, &text, client), &scope),
            &["a@1: x t0p"],
            &[],
        );
    }
}

#[test]
fn their_files_are_in_the_documented_locations() {
    let whereabouts = LocationEnv {
        home: Some(Path::new("/home/me")),
        here: Some(Path::new("/work/app")),
        variable: &|_| None,
    };
    let found = |clients: &[ConfigOwner]| -> Vec<String> {
        let format = |place: &ConfigLocation| format!("{:?} {}", place.holds, place.path.display());
        find_config_locations(clients, &whereabouts).iter().map(format).collect()
    };
    assert_eq!(found(&[ConfigOwner::Mcpproxy]), ["File /home/me/.mcpproxy/mcp_config.json"]);
    assert_eq!(found(&[ConfigOwner::CodeExecutionMode]), ["Files /home/me/MCPs"]);
    assert_eq!(
        found(&[ConfigOwner::CodeExecutor]),
        [
            "File /home/me/Library/Application Support/Claude/mcp.json",
            "File /home/me/.config/claude-code/mcp.json",
        ]
    );
    // They are searched only on request, and then come last, so they win.
    assert!(!found(&ConfigOwner::ALL).iter().any(|line| line.contains("mcpproxy")));
    let both = found(&[ConfigOwner::Mcpproxy, ConfigOwner::ClaudeDesktop]);
    assert!(both.last().is_some_and(|line| line.contains("mcpproxy")), "{both:?}");
}

#[test]
fn the_systems_are_recognized() {
    let check = |name: &str, line: &str, expected: Option<ConfigOwner>| {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap_or_default();
        let program = StdioConfig { command, args: words.collect(), ..StdioConfig::default() };
        let name = ServerName::new(name).expect("a name");
        let config = ServerConfig::stdio(name, program, PathBuf::new());
        assert_eq!(find_replaced_system(&config), expected, "{line}");
    };
    let (executor, mode) = (Some(ConfigOwner::CodeExecutor), Some(ConfigOwner::CodeExecutionMode));
    check("a", "npx -y code-executor-mcp@1.0.5", executor);
    check("a", "node /opt/node_modules/code-executor-mcp/dist/index.js", executor);
    check("a", "docker run -i --rm someone/code-executor-mcp:1.0.0", executor);
    check("code-executor", "x", executor);
    check("a", "uvx --from git+https://h/o/mcp-server-code-execution-mode run", mode);
    check("a", "python3 -m mcp_server_code_execution_mode", mode);
    check("a", "/usr/local/bin/mcpproxy serve", Some(ConfigOwner::Mcpproxy));
    check("a", "sh -c exec\tmcpproxy", Some(ConfigOwner::Mcpproxy));
    check("fs", "npx -y server-filesystem a b /home/me/mcpproxy", None);
    check("fs", "fs /home/me/code-executor", None);
    check("fs", "", None);
}
