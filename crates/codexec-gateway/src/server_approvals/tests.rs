use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::{Approvals, Client, Document, ProjectServers, Reach, Scope, World, merge, parse};

/// What one file says to whoever has approved some of it.
struct Desk {
    home: TempDir,
    claude: Approvals,
    mode: ProjectServers,
}

impl Desk {
    fn new() -> Desk {
        let home = tempfile::tempdir().expect("a directory");
        Desk { home, claude: Approvals::default(), mode: ProjectServers::Ask }
    }

    fn approvals(&self) -> ServerApprovals {
        ServerApprovals::new(self.home.path())
    }

    /// `more` is what stands in the files that an entry refers to.
    fn read(&self, at: (Client, Reach, bool), file: &str, text: &str, more: &str) -> Parsed {
        let (client, reach, is_guest_writable) = at;
        let world = World {
            home: Some(Path::new("/home/me")),
            here: Some(Path::new("/work/app")),
            variable: &|_| None,
            text_of: &|_| Some(more.to_owned()),
            is_own_program: &|_| false,
        };
        let scope = Scope {
            source: Path::new(file),
            client,
            reach,
            approvals: &self.claude,
            project_servers: self.mode,
            is_guest_writable,
            world,
        };
        let mut parsed = parse(&Document::new(text, client), &scope);
        assert_eq!(parsed.problems, []);
        self.approvals().settle(&mut parsed);
        merge(vec![parsed])
    }

    fn project(&self, entry: &str) -> Parsed {
        let at = (Client::Cursor, Reach::Project, true);
        self.read(at, "/work/app/f", &named("a", entry), "")
    }

    fn approve(&self, parsed: &Parsed) {
        let pending = parsed.waiting[0].pending.as_ref().expect("pending");
        self.approvals().approve(pending).expect("written");
    }
}

fn named(name: &str, entry: &str) -> String {
    format!(r#"{{"mcpServers": {{"{name}": {entry}}}}}"#)
}

#[track_caller]
fn check(parsed: &Parsed, is_used: bool) {
    let counts = (parsed.servers.len(), parsed.waiting.len());
    assert_eq!(counts, if is_used { (1, 0) } else { (0, 1) });
}

const ENTRY: &str = r#"{"command": "x", "args": ["1"], "env": {"A": "1"}, "cwd": "/d"}"#;

/// THREAT[CFG-6]: whatever the entry says, and wherever it stands, is a part of it.
#[test]
fn cfg_6_an_approval_is_for_the_entry_as_it_is() {
    let desk = Desk::new();
    let first = desk.project(ENTRY);
    check(&first, false);
    desk.approve(&first);
    check(&desk.project(ENTRY), true);
    check(&desk.project(&ENTRY.replace(' ', "  ")), true);
    for (from, to) in [
        ("\"x\"", "\"y\""),
        ("[\"1\"]", "[\"2\"]"),
        ("\"A\"", "\"LD_PRELOAD\""),
        ("{\"A\": \"1\"}", "{\"A\": \"2\"}"),
        ("\"/d\"", "\"/e\""),
        ("\"cwd\"", "\"unknown\": 1, \"cwd\""),
    ] {
        let changed = desk.project(&ENTRY.replace(from, to));
        check(&changed, false);
        let pending = changed.waiting[0].pending.as_ref().expect("pending");
        assert!(pending.is_change(), "{to}");
    }
    let at = (Client::Cursor, Reach::Project, true);
    check(&desk.read(at, "/work/app/g", &named("a", ENTRY), ""), false);
    let remote = |url: &str, token: &str| {
        let entry = format!(r#"{{"url": "{url}", "headers": {{"K": "{token}"}}}}"#);
        desk.project(&entry)
    };
    let first = remote("https://h/mcp", "1");
    desk.approve(&first);
    check(&remote("https://h/mcp", "1"), true);
    check(&remote("https://evil/mcp", "1"), false);
    check(&remote("https://h/mcp", "2"), false);
}

/// THREAT[CFG-6]: variables in a file that guests can write are a part of the entry.
#[test]
fn cfg_6_files_that_an_entry_reads_are_a_part_of_it() {
    let desk = Desk::new();
    let text = r#"{"servers": {"a": {"command": "x", "envFile": ".env"}}}"#;
    let at = (Client::VsCode, Reach::Project, true);
    let read = |more: &str| desk.read(at, "/work/app/.vscode/mcp.json", text, more);
    let first = read("A=1");
    desk.approve(&first);
    check(&read("A=1"), true);
    check(&read("A=1\nNODE_OPTIONS=--require=/work/app/x.js"), false);
}

/// THREAT[CFG-3]: approved in Claude Code is what was there then.
#[test]
fn cfg_3_a_name_approved_in_claude_code_is_approved_as_it_is_seen_first() {
    let mut desk = Desk::new();
    let user = r#"{"projects": {"/work/app": {"enabledMcpjsonServers": ["a", "later"]}}}"#;
    desk.claude.add_project(&Document::new(user, Client::ClaudeCode), Path::new("/work/app"));
    let at = (Client::ClaudeCode, Reach::Project, true);
    let read = |entry: &str| desk.read(at, "/work/app/.mcp.json", &named("a", entry), "");
    check(&read(ENTRY), true);
    check(&read(r#"{"command": "evil"}"#), false);
    check(&read(ENTRY), true);
    // Another client's file has nothing to do with it.
    check(&desk.project(ENTRY), false);
    // What was approved and is not there may not come as something else.
    let file = Path::new("/work/app/.mcp.json");
    desk.approvals().note_absent(file, desk.claude.approved(), &read(ENTRY));
    let later = named("later", r#"{"command": "evil"}"#);
    check(&desk.read(at, "/work/app/.mcp.json", &later, ""), false);
}

/// THREAT[CFG-6]: the user's own file in a directory of guests is theirs from the first change on.
#[test]
fn cfg_6_a_file_of_the_users_that_guests_can_write_is_pinned() {
    let desk = Desk::new();
    let read = |is_guests: bool, entry: &str| {
        let at = (Client::Named, Reach::Named, is_guests);
        desk.read(at, "/work/app/servers.json", &named("a", entry), "")
    };
    check(&read(true, ENTRY), true);
    check(&read(true, r#"{"command": "evil"}"#), false);
    check(&read(false, r#"{"command": "other"}"#), true);
}

#[test]
fn the_users_settings_may_say_otherwise() {
    let mut desk = Desk::new();
    desk.mode = ProjectServers::Allow;
    check(&desk.project(ENTRY), true);
    desk.mode = ProjectServers::Off;
    let off = desk.project(ENTRY);
    assert_eq!(off.servers[0].off.as_deref(), Some("`discovery.project-servers` is \"off\""));
}

/// THREAT[CFG-6]: an approval that others can write is none.
#[test]
fn cfg_6_an_approval_that_is_not_ours_counts_for_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new();
    let first = desk.project(ENTRY);
    let pending = first.waiting[0].pending.as_ref().expect("one");
    desk.approvals().approve(pending).expect("written");
    let path = desk.approvals().path(&pending.key);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("opened");
    check(&desk.project(ENTRY), false);
}
