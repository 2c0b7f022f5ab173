mod bounds;
mod clients;
mod own_file;
mod replaced_systems;

use std::path::Path;

use super::*;
use crate::{
    OAuthConfig, SecretSource, StdioConfig, TransportConfig,
    locations::{ConfigLocation, LocationEnv, find_config_locations},
    merge::merge_configs,
    own_program::find_replaced_system,
    server_name,
};

fn variable(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/me".to_owned()),
        "TOKEN" => Some("t0p".to_owned()),
        _ => None,
    }
}

fn text_of(path: &Path) -> Option<String> {
    match path.to_str()? {
        "/home/me/.secret" => Some("s3cret\n".to_owned()),
        "/work/app/.env" => Some("# c\nexport A=\"1\"\nB = two words\nnot an entry\n".to_owned()),
        _ => None,
    }
}

fn read(client: ConfigOwner, reach: ConfigScope, text: &str) -> ParsedConfig {
    let source = match client {
        ConfigOwner::Codexec => Path::new("/home/me/.codexec/config.toml"),
        ConfigOwner::Shared => Path::new("/home/me/.config/mcp/servers/lone.json"),
        _ => Path::new("/f"),
    };
    let document = ConfigDocument::new(text, client);
    let mut approvals = ClaudeApprovals::default();
    // Approvals in a settings file are ignored.
    approvals.add_settings(&ConfigDocument::new(
        r#"{"enabledMcpjsonServers": ["a", "b", "c"], "disabledMcpjsonServers": ["b"],
            "enableAllProjectMcpServers": true}"#,
        ConfigOwner::ClaudeCode,
    ));
    let world = ConfigEnv {
        home: Some(Path::new("/home/me")),
        here: Some(Path::new("/work/app")),
        variable: &variable,
        text_of: &text_of,
        is_own_program: &|command| command == "/opt/bin/own",
    };
    let scope = ConfigSource {
        source,
        client,
        reach,
        approvals: &approvals,
        project_servers: ProjectServers::Ask,
        is_guest_writable: false,
        world,
    };
    parse_config(&document, &scope)
}

fn secret(secret: &SecretSource) -> String {
    match secret {
        SecretSource::Plain(text) => text.clone(),
        SecretSource::Variable(name) => format!("<env {name}>"),
        SecretSource::File(path) => format!("<file {}>", path.display()),
        SecretSource::Keyring(name) => format!("<keyring {name}>"),
    }
}

/// Formats a server on one line, with only what is set.
fn format_server(found: &DiscoveredServer) -> String {
    let pairs = |pairs: &[(String, SecretSource)]| -> String {
        pairs.iter().map(|(name, value)| format!(" {name}={}", secret(value))).collect()
    };
    let mut line = format!("{}@{}: ", found.config.name, found.line);
    match &found.config.transport {
        TransportConfig::Stdio(program) => {
            line.push_str(&program.command);
            line.extend(program.args.iter().map(|arg| format!(" {arg}")));
            line.push_str(&pairs(&program.env));
            line.extend(program.cwd.iter().map(|cwd| format!(" in {}", cwd.display())));
        }
        TransportConfig::Remote(remote) => {
            line.push_str(&format!("{:?} {}", remote.kind, remote.url));
            line.push_str(&pairs(&remote.headers));
            if remote.oauth != OAuthConfig::default() {
                line.push_str(&format!(" {:?}", remote.oauth));
            }
        }
    }
    let narrow = &found.config.narrow;
    line.extend(narrow.enabled_tools.iter().map(|tools| format!(" only {tools:?}")));
    if !narrow.disabled_tools.is_empty() {
        line.push_str(&format!(" not {:?}", narrow.disabled_tools));
    }
    line.extend(narrow.startup_timeout.map(|time| format!(" start {time:?}")));
    line.extend(narrow.call_timeout.map(|time| format!(" call {time:?}")));
    line.extend(narrow.calls_at_once.map(|calls| format!(" x{calls}")));
    line.extend(narrow.trust.map(|trust| format!(" {}", trust.name())));
    line.extend(found.off.iter().map(|why| format!(" OFF {why}")));
    line.extend(found.pending.iter().map(|_| " PENDING"));
    line
}

#[track_caller]
fn check_parsed(parsed: &ParsedConfig, servers: &[&str], problems: &[&str]) {
    let actual: Vec<String> = parsed.servers.iter().map(format_server).collect();
    assert_eq!(actual, servers);
    let actual: Vec<String> = parsed
        .problems
        .iter()
        .map(|problem| match problem.effect {
            ProblemEffect::LeftOut => format!("{}: {}", problem.line, problem.what),
            ProblemEffect::Kept => format!("{}: ({})", problem.line, problem.what),
        })
        .collect();
    assert_eq!(actual, problems);
}

#[track_caller]
fn check(client: ConfigOwner, text: &str, servers: &[&str], problems: &[&str]) {
    check_parsed(&read(client, ConfigScope::User, text), servers, problems);
}

fn program(name: &str, command: &str, client: ConfigOwner, off: Option<&str>) -> ParsedConfig {
    let program = StdioConfig { command: command.to_owned(), ..StdioConfig::default() };
    let name = ServerName::new(name).expect("a name");
    let config = ServerConfig::stdio(name, program, PathBuf::new());
    let found =
        DiscoveredServer { config, client, line: 1, off: off.map(str::to_owned), pending: None };
    ParsedConfig { servers: vec![found], ..ParsedConfig::default() }
}

#[test]
fn the_later_file_wins() {
    let all = merge_configs(vec![
        program("a", "far", ConfigOwner::Cursor, None),
        program("b", "far", ConfigOwner::Cursor, None),
        program("a", "near", ConfigOwner::Zed, None),
        program("c", "near", ConfigOwner::Zed, None),
    ]);
    check_parsed(&all, &["a@1: near", "b@1: far", "c@1: near"], &[]);
}

#[test]
fn disabling_a_server_is_per_client() {
    let on = || program("a", "on", ConfigOwner::Cursor, None);
    let off = |client| program("a", "off", client, Some("so"));
    check_parsed(&merge_configs(vec![on(), off(ConfigOwner::Zed)]), &["a@1: on"], &[]);
    check_parsed(&merge_configs(vec![off(ConfigOwner::Zed), on()]), &["a@1: on"], &[]);
    check_parsed(&merge_configs(vec![on(), off(ConfigOwner::Cursor)]), &["a@1: off OFF so"], &[]);
}
