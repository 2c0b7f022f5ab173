//! Servers that a project's files name: inert until the user has approved them.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::servers::{health, process_of, until, until_servers};
use crate::startup::{check_gone, upstream};
use crate::support::{Client, command, home_with, write_file};

/// Every file of a project that may name servers, with the key that it has them under.
const FILES: [(&str, &str); 9] = [
    (".mcp.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".vscode/mcp.json", "servers"),
    (".codex/config.toml", "mcp_servers"),
    (".gemini/settings.json", "mcpServers"),
    (".github/mcp.json", "mcpServers"),
    (".zed/settings.json", "context_servers"),
    ("opencode.json", "mcp"),
    ("opencode.jsonc", "mcp"),
];

/// A project in a home of its own, as it was cloned.
struct Checkout {
    home: TempDir,
    project: PathBuf,
}

impl Checkout {
    fn new() -> Checkout {
        let home = home_with(&[("project/README", "")]);
        let project = home.path().canonicalize().expect("there").join("project");
        Checkout { home, project }
    }

    /// Names a server that leaves a file behind if anybody starts it.
    fn plant(&self) {
        let script = format!("echo ran >> {}", self.marker().display());
        for (index, (file, key)) in FILES.into_iter().enumerate() {
            let name = format!("s{index}");
            let text = match file {
                ".codex/config.toml" => {
                    format!("[{key}.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n")
                }
                "opencode.json" | "opencode.jsonc" => {
                    json!({key: {name: {"command": ["sh", "-c", script]}}}).to_string()
                }
                _ => json!({key: {name: {"command": "sh", "args": ["-c", script]}}}).to_string(),
            };
            write_file(&self.project, file, &text);
        }
    }

    fn marker(&self) -> PathBuf {
        self.home.path().join("ran")
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = command(self.home.path());
        command.args(args).current_dir(&self.project).output().expect("it runs")
    }

    #[track_caller]
    fn approve(&self, args: &[&str]) -> String {
        let output = self.run(&[&["servers", "approve"], args].concat());
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("UTF-8");
        assert_eq!(output.status.code(), Some(0), "{said}");
        said.replace(&self.project.display().to_string(), "PROJECT")
    }

    /// A client of a codexec that was started in the project.
    fn client(&self) -> Client {
        let (home, project) = (self.home.path().to_owned(), self.project.clone());
        Client::with(&json!({}), |command| {
            command.env("HOME", &home).env("CODEXEC_HOME", home.join("state"));
            command.current_dir(&project);
        })
    }

    fn states(&self) -> Vec<String> {
        let output = self.run(&["servers", "list", "--json"]);
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let servers = list["servers"].as_array().expect("a list").iter();
        servers.map(|server| server["state"].as_str().expect("a state").to_owned()).collect()
    }
}

fn named(name: &str, entry: &Value) -> String {
    json!({"mcpServers": {name: entry}}).to_string()
}

/// THREAT[CFG-6]: to clone a repository, and to work in it, starts nothing of it.
#[test]
fn cfg_6_what_a_projects_files_name_waits() {
    let checkout = Checkout::new();
    checkout.plant();
    assert_eq!(checkout.states(), ["waiting"; FILES.len()]);
    for args in [
        &["doctor"][..],
        &["tools", "list"],
        &["exec", "-l", "ts", "Object.keys(tools)"],
        &["servers", "approve"],
        &["servers", "approve", "s0"],
    ] {
        checkout.run(args);
    }
    let mut client = checkout.client();
    let found = client.call("search_tools", &json!({"query": ""})).fine();
    let note = "[servers waiting for the user's approval: s0, s1, s2, ..; the user runs `codexec \
                servers approve` in this project]";
    assert!(found.ends_with(note), "{found}");
    let waiting = &health(&mut client)["waiting_for_approval"]["servers"];
    assert_eq!(waiting.as_array().map(Vec::len), Some(FILES.len()));
    assert_eq!(client.run("Object.keys(tools)").fine(), "[]");
    let doctor = checkout.run(&["doctor"]).stdout;
    let doctor = String::from_utf8(doctor).expect("UTF-8");
    assert_eq!(doctor.matches("\n  WAITING  ").count(), FILES.len(), "{doctor}");
    assert!(!checkout.marker().exists(), "a project's server was started");
    // The same commands start it once the user has said so.
    checkout.approve(&["--yes"]);
    checkout.run(&["servers", "list"]);
    assert!(checkout.marker().exists(), "an approved server was not started");
}

/// THREAT[CFG-6]: a file that appears or changes while we serve waits as well.
#[test]
fn cfg_6_a_planted_or_changed_file_starts_nothing() {
    let checkout = Checkout::new();
    let mut client = checkout.client();
    let said = |client: &mut Client| client.call("search_tools", &json!({"query": ""})).fine();
    write_file(&checkout.project, ".mcp.json", &named("helper", &upstream(&["helper"])));
    until(&mut client, |client| match health(client)["waiting_for_approval"]["servers"] {
        Value::Array(_) => Ok(()),
        _ => Err("nothing waits".to_owned()),
    });
    assert!(said(&mut client).contains("approval: helper;"));
    let shown = checkout.approve(&["helper", "--yes"]);
    assert!(
        shown.starts_with("server helper: its entry in PROJECT/.mcp.json:1 is new\n"),
        "{shown}"
    );
    assert!(
        shown.ends_with("server helper: approved; codexec starts it when it is needed\n"),
        "{shown}"
    );
    until_servers(&mut client, &["helper"]);
    let process = process_of(&mut client, "helper");
    let who: Value =
        serde_json::from_str(&client.run("await tools.helper.who()").fine()).expect("JSON");
    assert_eq!(who["cwd"], json!(checkout.project), "an approved server starts in its project");
    // Another argument is another entry: the server that runs is ended, and nothing starts.
    write_file(&checkout.project, ".mcp.json", &named("helper", &upstream(&["helper", "more"])));
    until_servers(&mut client, &[]);
    check_gone(&[(process, "helper".to_owned())]);
    until(&mut client, |client| match said(client) {
        said if said.contains("approval: helper;") => Ok(()),
        said => Err(said),
    });
    let shown = checkout.approve(&["helper", "--yes"]);
    let changed =
        "server helper: its entry in PROJECT/.mcp.json:1 has changed\n\n    + args[3]: more\n";
    assert!(shown.starts_with(changed), "{shown}");
    until_servers(&mut client, &["helper"]);
}

/// THREAT[CFG-6]: a project's entry does not take the place of the user's own.
#[test]
fn cfg_6_a_waiting_entry_replaces_nothing() {
    let checkout = Checkout::new();
    let entry = |word: &str| named("hub", &upstream(&[word]));
    write_file(checkout.home.path(), ".cursor/mcp.json", &entry("mine"));
    write_file(&checkout.project, ".cursor/mcp.json", &entry("theirs"));
    let mut client = checkout.client();
    let name = |client: &mut Client| client.run("(await tools.hub.who()).name").text;
    assert_eq!(name(&mut client), "mine");
    assert_eq!(checkout.states(), ["ready", "waiting"]);
    checkout.approve(&["hub", "--yes"]);
    until(&mut client, |client| match name(client).as_str() {
        "theirs" => Ok(()),
        other => Err(other.to_owned()),
    });
}

/// THREAT[CFG-6]: only the user's own settings let all of them start.
#[test]
fn cfg_6_the_users_settings_may_say_otherwise() {
    let checkout = Checkout::new();
    checkout.plant();
    let set = |text: &str| write_file(checkout.home.path(), "state/config.toml", text);
    set("[discovery]\nproject-servers = \"off\"\n");
    assert_eq!(checkout.states(), ["disabled"; FILES.len()]);
    set("[discovery]\nproject-files = false\n");
    assert_eq!(checkout.states(), [""; 0]);
    set("[discovery]\nproject-servers = \"yes\"\n");
    let refused = String::from_utf8(checkout.run(&["servers", "list"]).stderr).expect("UTF-8");
    let why = "`discovery.project-servers` is \"yes\"; write \"ask\", \"allow\" or \"off\"\n";
    assert!(refused.ends_with(why), "{refused}");
    assert!(!checkout.marker().exists());
    set("[discovery]\nproject-servers = \"allow\"\n");
    checkout.states();
    assert!(checkout.marker().exists(), "the user's word did not count");
}

/// THREAT[CFG-9]: whoever else can write our directory or settings decides nothing.
#[test]
fn cfg_9_a_home_or_settings_that_others_can_write_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let checkout = Checkout::new();
    write_file(checkout.home.path(), "state/config.toml", "[limits]\nmemory-mib = 64\n");
    let state = checkout.home.path().join("state");
    let chmod = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
    };
    let check = |expected: Option<&str>| {
        let output = checkout.run(&["exec", "-l", "ts", "6 * 7"]);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        let said = said.replace(&state.display().to_string(), "STATE");
        match expected {
            None => assert_eq!(said, "42\n"),
            Some(why) => assert_eq!(said, format!("error: {why}\n")),
        }
    };
    check(None);
    chmod(&state, 0o777);
    check(Some(
        "STATE can be written by others (mode 777), who could make codexec run anything; \
         check its contents, then run `chmod 700 STATE`",
    ));
    chmod(&state, 0o700);
    chmod(&state.join("config.toml"), 0o666);
    check(Some(
        "STATE/config.toml can be written by others (mode 666); check its contents, then run \
         `chmod 600 STATE/config.toml`",
    ));
    chmod(&state.join("config.toml"), 0o644);
    check(None);
    let planted = checkout.project.join("own.toml");
    std::fs::write(&planted, "").expect("written");
    let refused = checkout.run(&["exec", "-l", "ts", "--config", "own.toml", "1"]);
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(said.contains("which code may write; move it"), "{said}");
}
