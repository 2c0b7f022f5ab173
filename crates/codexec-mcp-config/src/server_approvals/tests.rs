use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::{
    ClaudeApprovals, ConfigDocument, ConfigEnv, ConfigOwner, ConfigScope, ConfigSource,
    ProjectServers, merge::merge_configs, parse::parse_config,
};

/// The approvals and settings of one user, with which config files are read.
struct ApprovalUser {
    home: TempDir,
    claude: ClaudeApprovals,
    mode: ProjectServers,
}

impl ApprovalUser {
    fn new() -> ApprovalUser {
        let home = tempfile::tempdir().expect("a directory");
        ApprovalUser { home, claude: ClaudeApprovals::default(), mode: ProjectServers::Ask }
    }

    fn approvals(&self) -> ServerApprovals {
        ServerApprovals::new(self.home.path())
    }

    /// Parses `text`; `referred` is the text of the files that an entry refers to.
    fn read(
        &self,
        at: (ConfigOwner, ConfigScope, bool),
        file: &str,
        text: &str,
        referred: &str,
    ) -> ParsedConfig {
        let (client, reach, is_guest_writable) = at;
        let world = ConfigEnv {
            home: Some(Path::new("/home/me")),
            here: Some(Path::new("/work/app")),
            variable: &|_| None,
            text_of: &|_| Some(referred.to_owned()),
            is_own_program: &|_| false,
        };
        let scope = ConfigSource {
            source: Path::new(file),
            client,
            reach,
            approvals: &self.claude,
            project_servers: self.mode,
            is_guest_writable,
            world,
        };
        let mut parsed = parse_config(&ConfigDocument::new(text, client), &scope);
        assert_eq!(parsed.problems, []);
        self.approvals().apply(&mut parsed);
        merge_configs(vec![parsed])
    }

    fn project(&self, entry: &str) -> ParsedConfig {
        let at = (ConfigOwner::Cursor, ConfigScope::Project, true);
        self.read(at, "/work/app/f", &named("a", entry), "")
    }

    fn approve(&self, parsed: &ParsedConfig) {
        let pending = parsed.waiting[0].pending.as_ref().expect("pending");
        self.approvals().approve(pending).expect("written");
    }
}

fn named(name: &str, entry: &str) -> String {
    format!(r#"{{"mcpServers": {{"{name}": {entry}}}}}"#)
}

#[track_caller]
fn check(parsed: &ParsedConfig, is_used: bool) {
    let counts = (parsed.servers.len(), parsed.waiting.len());
    assert_eq!(counts, if is_used { (1, 0) } else { (0, 1) });
}

const ENTRY: &str = r#"{"command": "x", "args": ["1"], "env": {"A": "1"}, "cwd": "/d"}"#;

/// THREAT[CFG-6]: an approval covers everything in the entry, and its file.
#[test]
fn cfg_6_an_approval_is_for_the_exact_entry() {
    let user = ApprovalUser::new();
    let first = user.project(ENTRY);
    check(&first, false);
    user.approve(&first);
    check(&user.project(ENTRY), true);
    check(&user.project(&ENTRY.replace(' ', "  ")), true);
    for (from, to) in [
        ("\"x\"", "\"y\""),
        ("[\"1\"]", "[\"2\"]"),
        ("\"A\"", "\"LD_PRELOAD\""),
        ("{\"A\": \"1\"}", "{\"A\": \"2\"}"),
        ("\"/d\"", "\"/e\""),
        ("\"cwd\"", "\"unknown\": 1, \"cwd\""),
    ] {
        let changed = user.project(&ENTRY.replace(from, to));
        check(&changed, false);
        let pending = changed.waiting[0].pending.as_ref().expect("pending");
        assert!(pending.is_change(), "{to}");
    }
    let at = (ConfigOwner::Cursor, ConfigScope::Project, true);
    check(&user.read(at, "/work/app/g", &named("a", ENTRY), ""), false);
    let remote = |url: &str, token: &str| {
        let entry = format!(r#"{{"url": "{url}", "headers": {{"K": "{token}"}}}}"#);
        user.project(&entry)
    };
    let first = remote("https://h/mcp", "1");
    user.approve(&first);
    check(&remote("https://h/mcp", "1"), true);
    check(&remote("https://evil/mcp", "1"), false);
    check(&remote("https://h/mcp", "2"), false);
}

/// THREAT[CFG-6]: variables in a file that guests can write are part of the entry.
#[test]
fn cfg_6_files_that_an_entry_reads_are_part_of_it() {
    let user = ApprovalUser::new();
    let text = r#"{"servers": {"a": {"command": "x", "envFile": ".env"}}}"#;
    let at = (ConfigOwner::VsCode, ConfigScope::Project, true);
    let read = |env_file: &str| user.read(at, "/work/app/.vscode/mcp.json", text, env_file);
    let first = read("A=1");
    user.approve(&first);
    check(&read("A=1"), true);
    check(&read("A=1\nNODE_OPTIONS=--require=/work/app/x.js"), false);
}

/// THREAT[CFG-3]: an approval in Claude Code covers only the entry that existed at the time.
#[test]
fn cfg_3_a_name_approved_in_claude_code_is_approved_when_first_seen() {
    let mut user = ApprovalUser::new();
    let claude_json = r#"{"projects": {"/work/app": {"enabledMcpjsonServers": ["a", "later"]}}}"#;
    user.claude.add_project(
        &ConfigDocument::new(claude_json, ConfigOwner::ClaudeCode),
        Path::new("/work/app"),
    );
    let at = (ConfigOwner::ClaudeCode, ConfigScope::Project, true);
    let read = |entry: &str| user.read(at, "/work/app/.mcp.json", &named("a", entry), "");
    check(&read(ENTRY), true);
    check(&read(r#"{"command": "evil"}"#), false);
    check(&read(ENTRY), true);
    // The approval does not apply to another client's file.
    check(&user.project(ENTRY), false);
    // An approved name without an entry must not approve an entry that is added later.
    let file = Path::new("/work/app/.mcp.json");
    user.approvals().record_absent(file, user.claude.approved_names(), &read(ENTRY));
    let later = named("later", r#"{"command": "evil"}"#);
    check(&user.read(at, "/work/app/.mcp.json", &later, ""), false);
}

/// THREAT[CFG-6]: in a directory of guests, a change of the user's own file needs approval.
#[test]
fn cfg_6_a_file_of_the_users_that_guests_can_write_is_pinned() {
    let user = ApprovalUser::new();
    let read = |is_guest_writable: bool, entry: &str| {
        let at = (ConfigOwner::Named, ConfigScope::Named, is_guest_writable);
        user.read(at, "/work/app/servers.json", &named("a", entry), "")
    };
    check(&read(true, ENTRY), true);
    check(&read(true, r#"{"command": "evil"}"#), false);
    check(&read(false, r#"{"command": "other"}"#), true);
}

#[test]
fn the_users_settings_can_allow_or_disable_project_servers() {
    let mut user = ApprovalUser::new();
    user.mode = ProjectServers::Allow;
    check(&user.project(ENTRY), true);
    user.mode = ProjectServers::Off;
    let off = user.project(ENTRY);
    assert_eq!(off.servers[0].off.as_deref(), Some("`discovery.project-servers` is \"off\""));
}

/// THREAT[CFG-6]: an approval that others can write is ignored.
#[test]
fn cfg_6_an_approval_that_others_can_write_is_ignored() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = ApprovalUser::new();
    let first = user.project(ENTRY);
    let pending = first.waiting[0].pending.as_ref().expect("one");
    user.approvals().approve(pending).expect("written");
    let path = user.approvals().path(&pending.key);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("opened");
    check(&user.project(ENTRY), false);
}
