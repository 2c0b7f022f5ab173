//! Where servers come from: the files that name them, the commands that change them, and what
//! happens when they change while we serve.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::attacks::host::within;
use crate::startup::{check_gone, python, upstream, upstreams_of};
use crate::support::{Client, PATIENCE, codexec, command, home_with, write_file};

/// An upstream that talks on its standard error.
const NOISY: &str = concat!(
    "import sys\nsys.stderr.write('one\\ntwo \\x1b[31mred\\nthree\\n')\nsys.stderr.flush()\n",
    include_str!("startup/upstream.py")
);

/// A home directory with these files, and what `codexec` prints and returns in it.
struct Home(TempDir);

impl Home {
    fn new(files: &[(&str, &str)]) -> Home {
        Home(home_with(files))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        write_file(self.path(), name, text);
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("there")
    }

    /// The exit code, and both streams with the home directory as `HOME`.
    fn run(&self, args: &[&str]) -> (i32, String) {
        let output = command(self.path()).args(args).output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("UTF-8");
        let text = text.replace(&self.path().display().to_string(), "HOME");
        (output.status.code().expect("a code"), text.trim_end().to_owned())
    }

    #[track_caller]
    fn fine(&self, args: &[&str]) -> String {
        let (code, text) = self.run(args);
        assert_eq!(code, 0, "{args:?}: {text}");
        text
    }

    #[track_caller]
    fn refused(&self, args: &[&str], expected: &str) {
        assert_eq!(self.run(args), (2, format!("error: {expected}")), "{args:?}");
    }

    /// Name, state, client and line of each server.
    fn list(&self) -> Vec<String> {
        let list: Value =
            serde_json::from_str(&self.fine(&["servers", "list", "--no-check", "--json"]))
                .expect("JSON");
        let servers = list["servers"].as_array().expect("a list").iter();
        servers
            .map(|server| {
                let word = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
                let (name, state, client) = (word("name"), word("state"), word("client"));
                format!("{name} {} {state} {client}:{}", word("transport"), server["line"])
            })
            .collect()
    }
}

/// The text of a file with these servers under `key`.
fn naming(key: &str, servers: &[&str]) -> String {
    let entries: serde_json::Map<String, Value> =
        servers.iter().map(|name| ((*name).to_owned(), upstream(&[name]))).collect();
    json!({key: entries}).to_string()
}

#[test]
fn every_clients_file_is_found() {
    let usual = |name: &str| format!("{{\"mcpServers\": {{\"{name}\": {{\"command\": \"x\"}}}}}}");
    let project = std::path::PathBuf::from("project");
    let home = Home::new(&[
        (".claude.json", &usual("claude-code")),
        (".config/Claude/claude_desktop_config.json", &usual("claude-desktop")),
        (".cursor/mcp.json", &usual("cursor")),
        (".config/Code/User/mcp.json", "{\"servers\": {\"vscode\": {\"command\": \"x\"}}}"),
        (".copilot/mcp-config.json", &usual("copilot")),
        (".codeium/windsurf/mcp_config.json", &usual("windsurf")),
        (".config/zed/settings.json", "{\"context_servers\": {\"zed\": {\"command\": \"x\"}}}"),
        (".codex/config.toml", "[mcp_servers.codex]\ncommand = \"x\"\n"),
        (".gemini/settings.json", &usual("gemini")),
        (
            ".config/goose/config.yaml",
            "extensions:\n  goose:\n    type: stdio\n    cmd: x\n    enabled: true\n",
        ),
        (
            ".config/opencode/opencode.jsonc",
            "{\"mcp\": {\"opencode\": {\"type\": \"local\", \"command\": [\"x\"],},},}",
        ),
        (".cline/data/settings/cline_mcp_settings.json", &usual("cline")),
        (".config/mcp/servers.json", &usual("shared")),
        (".config/mcp/servers/lone.json", "{\"url\": \"https://example.invalid/mcp\"}"),
        ("state/config.toml", "[servers.own]\ncommand = \"x\"\n"),
        ("project/.mcp.json", &usual("p-claude")),
        ("project/.cursor/mcp.json", &usual("p-cursor")),
        ("project/.vscode/mcp.json", "{\"servers\": {\"p-vscode\": {\"command\": \"x\"}}}"),
        ("project/opencode.json", "{\"mcp\": {\"p-opencode\": {\"command\": [\"x\"]}}}"),
    ]);
    let mut listing = command(home.path());
    listing.current_dir(home.path().join(&project));
    let output =
        listing.args(["servers", "list", "--no-check", "--json"]).output().expect("it runs");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut found: Vec<&str> = list["servers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|server| server["name"].as_str().expect("a name"))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "claude-code",
            "claude-desktop",
            "cline",
            "codex",
            "copilot",
            "cursor",
            "gemini",
            "goose",
            "lone",
            "opencode",
            "own",
            "p-claude",
            "p-cursor",
            "p-opencode",
            "p-vscode",
            "shared",
            "vscode",
            "windsurf",
            "zed",
        ]
    );
    assert_eq!(list["problems"], json!([]));
}

#[test]
fn other_programs_files_are_left_alone_where_the_user_says_so() {
    let files = [(".cursor/mcp.json", naming("mcpServers", &["a"]))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let home = Home::new(&files);
    assert_eq!(home.list(), ["a stdio not checked cursor:1"]);
    home.write("state/config.toml", "[discovery]\nclients = [\"zed\", \"codex\"]\n");
    assert_eq!(home.list(), [""; 0]);
    home.write("state/config.toml", "[discovery]\nenabled = false\n");
    assert_eq!(home.list(), [""; 0]);
    home.write("state/config.toml", "[discovery]\nclients = [\"emacs\"]\n");
    let why = "HOME/state/config.toml: `discovery.clients` names \"emacs\"; the clients are \
               claude-code, cursor, vscode, codex, gemini, copilot, windsurf, zed, opencode, goose, \
               cline, claude-desktop, mcp";
    home.refused(&["servers", "list"], why);
    home.write("state/config.toml", "");
    let output = command(home.path())
        .env("CODEXEC_DISCOVER", "0")
        .args(["servers", "list"])
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text, "no file names a server; add one with `codexec servers add`\n");
}

#[test]
fn the_list_tells_how_each_is_doing_and_what_to_do() {
    let home = Home::new(&[(
        ".cursor/mcp.json",
        &json!({"mcpServers": {
            "good": upstream(&["good"]),
            "missing": {"command": "/nowhere/server"},
            "off": {"command": "x", "disabled": true},
            "bad": {"command": 1},
        }})
        .to_string(),
    )]);
    home.write(".codex/config.toml", "model = \"x\"\n[mcp_servers.a\n");
    assert_eq!(
        home.fine(&["servers", "list"]),
        "NAME     TRANSPORT  STATE     TOOLS  WHERE\n\
         good     stdio      ready     1      HOME/.cursor/mcp.json:1 (cursor)\n\
         missing  stdio      failed    -      HOME/.cursor/mcp.json:1 (cursor)\n\
         off      stdio      disabled  -      HOME/.cursor/mcp.json:1 (cursor)\n\
         bad      -          left out  -      HOME/.cursor/mcp.json:1 (cursor)\n\
         \n\
         missing: it did not start: \"/nowhere/server\" was not found; install it, or write its whole \
         path\n\
         off: it is disabled in that file\n\
         HOME/.codex/config.toml:2: it is not TOML: unclosed table, expected `]`, at column 15\n\
         HOME/.cursor/mcp.json:1: server \"bad\": `command` is missing or empty; write the program \
         that starts it"
    );
}

#[test]
fn servers_are_added_switched_off_and_removed() {
    let kept = "# mine\n[limits]\nmemory-mib = 64 # little\n";
    let home = Home::new(&[("state/config.toml", kept)]);
    home.write(".cursor/mcp.json", &naming("mcpServers", &["theirs"]));
    let add = |args: &[&str]| home.fine(&[&["servers", "add"], args].concat());
    add(&["-e", "A=env:HOME", "--env", "B=x=y", "files", "--", "npx", "-y", "fs", "--root", "/"]);
    add(&["far", "https://example.invalid/mcp", "-H", "Authorization: env:T"]);
    add(&["--transport", "sse", "old", "https://example.invalid/sse"]);
    let added = format!(
        "{kept}\n[servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"fs\", \"--root\", \"/\"]\n\
         env = {{ A = \"env:HOME\", B = \"x=y\" }}\n\n\
         [servers.far]\nurl = \"https://example.invalid/mcp\"\n\
         headers = {{ Authorization = \"env:T\" }}\n\n\
         [servers.old]\nurl = \"https://example.invalid/sse\"\ntype = \"sse\"\n"
    );
    assert_eq!(home.read("state/config.toml"), added);
    let mode = home.path().join("state/config.toml").metadata().expect("there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    assert_eq!(
        home.list(),
        [
            "theirs stdio not checked cursor:1",
            "files stdio not checked codexec:5",
            "far http not checked codexec:10",
            "old sse not checked codexec:14",
        ]
    );
    for name in ["theirs", "files"] {
        let before = home.read("state/config.toml");
        home.fine(&["servers", "disable", name]);
        assert!(home.list().iter().any(|line| line.starts_with(&format!("{name} stdio disabled"))));
        home.fine(&["servers", "enable", name]);
        assert!(!home.list().iter().any(|line| line.contains("disabled")));
        assert_eq!(home.read("state/config.toml"), before, "a trace is left");
    }
    for name in ["files", "far", "old"] {
        home.fine(&["servers", "remove", name]);
    }
    assert_eq!(home.list(), ["theirs stdio not checked cursor:1"]);
    assert!(home.read("state/config.toml").starts_with(kept));
    home.refused(
        &["servers", "remove", "theirs"],
        "theirs is named in HOME/.cursor/mcp.json:1, and codexec never writes other programs' \
         files; remove it there, or disable it with `codexec servers disable theirs`",
    );
}

/// Afterwards, the client's file is not needed any more.
#[test]
fn servers_are_taken_over_from_a_clients_file() {
    let theirs = json!({"mcpServers": {
        "one": {"command": "npx", "args": ["-y", "one"], "env": {"TOKEN": "${SECRET}", "A": "b"}},
        "far": {"url": "https://example.invalid/mcp", "headers": {"Authorization": "Bearer x"}},
        "two": {"command": "two", "disabled": true},
    }});
    let home = Home::new(&[(".cursor/mcp.json", &theirs.to_string())]);
    home.write(".claude.json", "{\"mcpServers\": {\"other\": {\"command\": \"x\"}}}");
    let said = home.fine(&["servers", "import", "--from", "cursor"]);
    assert!(said.starts_with("one: copied from HOME/.cursor/mcp.json:1\n"), "{said}");
    assert_eq!(
        home.read("state/config.toml"),
        "\n[servers.one]\ncommand = \"npx\"\nargs = [\"-y\", \"one\"]\n\
         env = { A = \"b\", TOKEN = \"${SECRET}\" }\n\n\
         [servers.far]\nurl = \"https://example.invalid/mcp\"\n\
         headers = { Authorization = \"Bearer x\" }\n\n\
         [servers.two]\ncommand = \"two\"\nenabled = false\n"
    );
    std::fs::remove_file(home.path().join(".cursor/mcp.json")).expect("removed");
    let list = home.list();
    for line in [
        "one stdio not checked codexec:",
        "far http not checked codexec:",
        "two stdio disabled codexec:",
    ] {
        assert!(list.iter().any(|found| found.starts_with(line)), "{list:?}");
    }
    assert!(home.fine(&["servers", "import", "one"]).contains("nothing to import"));
    assert!(home.fine(&["servers", "import", "other"]).contains("other: copied from"));
}

#[test]
fn what_cannot_be_added_is_refused_and_changes_nothing() {
    let home = Home::new(&[("state/config.toml", "[servers.a]\ncommand = \"x\"\n")]);
    let own = codexec().display().to_string();
    let check = |args: &[&str], why: &str| {
        home.refused(&[&["servers", "add"], args].concat(), why);
        assert_eq!(home.read("state/config.toml"), "[servers.a]\ncommand = \"x\"\n");
    };
    check(
        &["../x", "--", "y"],
        "server name \"../x\" is not allowed; use 1 to 64 of the characters A-Z a-z 0-9 _ -",
    );
    check(
        &["a", "--", "y"],
        "HOME/state/config.toml already names a; remove it first with `codexec servers remove a`",
    );
    check(&["b", "--", &own], "this command starts codexec itself, which cannot be its own server");
    check(
        &["b", "--", "sh", "-c", &own],
        "this command starts codexec itself, which cannot be its own server",
    );
    check(
        &["-t", "http", "b", "ftp://h"],
        "server \"b\": `url` has the scheme \"ftp\"; use http or https",
    );
    check(&["b", "npx"], "\"npx\" is not a URL; write a program after `--`, like `-- npx`");
    check(&["-e", "K", "b", "--", "x"], "an entry for `env` has no '=' in it");
    check(
        &["-H", "A: b", "b", "--", "x"],
        "the header \"A\" is for a URL; a program has no headers",
    );
    check(
        &["-e", "A=b", "b", "https://h"],
        "the variable \"A\" is for a program; a URL has no variables",
    );
    home.refused(&["servers", "disable", "aa"], "no file names a server \"aa\"; did you mean a?");
    home.refused(
        &["servers", "logs", "../../../xyz"],
        "no file names a server \"../../../xyz\"; `codexec servers list` shows all",
    );
}

/// A link to our own binary, by any name and in a wrapper, is still us.
#[test]
fn a_link_to_ourselves_is_ourselves() {
    let home = Home::new(&[]);
    let link = home.path().join("innocent");
    std::os::unix::fs::symlink(codexec(), &link).expect("a link");
    let link = link.display().to_string();
    home.write(
        ".mcp.json",
        &json!({"mcpServers": {
            "a": {"command": link},
            "b": {"command": "env", "args": ["X=1", link]},
            "c": {"command": "sh", "args": ["-c", format!("exec {link} serve")]},
        }})
        .to_string(),
    );
    assert_eq!(home.list(), [""; 0]);
}

/// THREAT[CFG-2]: whatever stands where a file should be, the others are read.
#[test]
fn cfg_2_what_is_no_file_holds_nobody_up() {
    let desktop = ".config/Claude/claude_desktop_config.json";
    let home = Home::new(&[(desktop, &naming("mcpServers", &["good"]))]);
    let at = |name: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        path
    };
    let made = std::process::Command::new("mkfifo").arg(at(".cursor/mcp.json")).status();
    assert!(made.expect("mkfifo runs").success());
    std::os::unix::fs::symlink("/dev/zero", at(".codeium/windsurf/mcp_config.json"))
        .expect("a link");
    std::os::unix::fs::symlink("settings.json", at(".gemini/settings.json")).expect("a loop");
    std::fs::create_dir(at(".copilot/mcp-config.json")).expect("made");
    let huge = std::fs::File::create(at(".claude.json")).expect("a file");
    huge.set_len(2 << 30).expect("sparse");
    write_file(home.path(), ".config/zed/settings.json", &"[".repeat(1_000_000));
    let list = home.fine(&["servers", "list", "--no-check"]);
    let told: Vec<&str> = list.lines().skip_while(|line| !line.is_empty()).skip(1).collect();
    assert_eq!(
        told,
        [
            "HOME/.config/zed/settings.json:1: it is not JSON: it is nested deeper than 64 \
             levels, at column 65",
            "HOME/.codeium/windsurf/mcp_config.json:1: it cannot be read: it is not a file",
            "HOME/.copilot/mcp-config.json:1: it cannot be read: it is not a file",
            "HOME/.gemini/settings.json:1: it cannot be read: Too many levels of symbolic links \
             (os error 40)",
            "HOME/.cursor/mcp.json:1: it cannot be read: it is not a file",
            "HOME/.claude.json:1: it cannot be read: it has 2147483648 bytes; at most 33554432 are \
             read",
        ]
    );
    assert_eq!(home.list(), ["good stdio not checked claude-desktop:1"]);
}

/// THREAT[CFG-3]: who has approved some of a project's servers has not approved the others, and
/// the project's own settings approve none.
#[test]
fn cfg_3_a_projects_file_gets_no_more_than_the_user_approved() {
    let home = Home::new(&[
        (".mcp.json", &naming("mcpServers", &["known", "new", "no"])),
        (
            ".claude/settings.local.json",
            r#"{"enabledMcpjsonServers": ["known", "new", "no"], "disabledMcpjsonServers": ["no"],
                "enableAllProjectMcpServers": true}"#,
        ),
    ]);
    let waiting = [
        "known stdio waiting claude-code:1",
        "new stdio waiting claude-code:1",
        "no stdio disabled claude-code:1",
    ];
    assert_eq!(home.list(), waiting);
    let here = home.path().canonicalize().expect("there").display().to_string();
    let own = json!({"projects": {here: {"enabledMcpjsonServers": ["known"]}}});
    home.write(".claude.json", &own.to_string());
    let known = "known stdio not checked claude-code:1";
    assert_eq!(home.list(), [known, waiting[1], waiting[2]]);
    let said = home.fine(&["servers", "enable", "new"]);
    assert_eq!(said, "new is enabled, and waits for your approval: `codexec servers approve new`");
    assert_eq!(home.list(), [known, waiting[1], waiting[2]]);
    // What the user approved there is what was there.
    home.write(".mcp.json", &naming("mcpServers", &["known", "new"]).replace("who", "whom"));
    assert_eq!(home.list(), [waiting[0], waiting[1]]);
}

/// Waits until `test` gives something; whoever waits in vain gets what was seen last.
#[track_caller]
pub(crate) fn until<T>(
    client: &mut Client,
    mut test: impl FnMut(&mut Client) -> Result<T, String>,
) -> T {
    let mut last = Err("nothing".to_owned());
    within(PATIENCE, || {
        last = test(client);
        last.is_ok()
    });
    last.unwrap_or_else(|seen| panic!("{seen}; {}", client.stderr()))
}

/// Waits until these are the servers that code sees.
#[track_caller]
pub(crate) fn until_servers(client: &mut Client, expected: &[&str]) {
    until(client, |client| {
        let seen: Vec<String> =
            serde_json::from_str(&client.run("Object.keys(tools).sort()").fine()).expect("JSON");
        if seen == expected { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}

/// The process of a server that has been called.
#[track_caller]
pub(crate) fn process_of(client: &mut Client, server: &str) -> u32 {
    client.run(&format!("await tools[{server:?}].who()")).fine();
    let found = upstreams_of(client);
    let found: Vec<u32> =
        found.iter().filter(|(_, name)| name == server).map(|(pid, _)| *pid).collect();
    assert_eq!(found.len(), 1, "{server}: {found:?}");
    found[0]
}

pub(crate) fn health(client: &mut Client) -> Value {
    serde_json::from_str(&client.call("health", &json!({})).fine()).expect("JSON")
}

#[test]
fn changed_files_are_followed_while_we_serve() {
    let mut client = Client::start(&json!({"kept": upstream(&["kept"])}));
    let home = client.home.path().to_owned();
    until_servers(&mut client, &["kept"]);
    let process = process_of(&mut client, "kept");
    // A file that appears, in a folder that appears.
    write_file(&home, ".cursor/mcp.json", &naming("mcpServers", &["one"]));
    until_servers(&mut client, &["kept", "one"]);
    until(&mut client, |client| {
        let found = client.call("search_tools", &json!({"query": "who one"})).fine();
        if found.contains("one.who") { Ok(()) } else { Err(found) }
    });
    let gone = process_of(&mut client, "one");
    // Replaced as editors do.
    write_file(&home, ".cursor/new", &naming("mcpServers", &["two"]));
    std::fs::rename(home.join(".cursor/new"), home.join(".cursor/mcp.json")).expect("renamed");
    until_servers(&mut client, &["kept", "two"]);
    check_gone(&[(gone, "one".to_owned())]);
    // Our own settings.
    write_file(&home, "state/config.toml", "[servers.two]\nenabled = false\n");
    until_servers(&mut client, &["kept"]);
    write_file(&home, "state/config.toml", "");
    until_servers(&mut client, &["kept", "two"]);
    std::fs::remove_file(home.join(".cursor/mcp.json")).expect("removed");
    until_servers(&mut client, &["kept"]);
    assert_eq!(process_of(&mut client, "kept"), process, "it was started anew");
}

#[test]
fn a_file_that_breaks_keeps_what_it_said() {
    let mut client = Client::start(&json!({"kept": upstream(&["kept"])}));
    let home = client.home.path().to_owned();
    write_file(&home, ".cursor/mcp.json", &naming("mcpServers", &["one"]));
    until_servers(&mut client, &["kept", "one"]);
    let process = process_of(&mut client, "one");
    write_file(&home, ".cursor/mcp.json", "{\"mcpServers\": {");
    write_file(&home, "servers.json", "[");
    let expected = [
        format!(
            "{}:1: it is not JSON: it ends inside an object, at column 17; its last valid content \
             still applies",
            home.join(".cursor/mcp.json").display()
        ),
        format!(
            "{}:1: it is not JSON: it ends too early, at column 2; its last valid content still applies",
            home.join("servers.json").display()
        ),
    ];
    until(&mut client, |client| {
        let seen = &health(client)["problems"];
        if *seen == json!(expected) { Ok(()) } else { Err(seen.to_string()) }
    });
    until_servers(&mut client, &["kept", "one"]);
    assert_eq!(process_of(&mut client, "one"), process);
    write_file(&home, ".cursor/mcp.json", &naming("mcpServers", &["one", "two"]));
    until_servers(&mut client, &["kept", "one", "two"]);
    assert_eq!(process_of(&mut client, "one"), process, "it was started anew");
}

/// THREAT[POL-2]: a pattern means the same tools after the servers have changed.
#[test]
fn pol_2_patterns_are_read_against_the_servers_of_now() {
    let mut client = Client::with(&json!({"a": upstream(&["a"])}), |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        write_file(
            &home,
            "state/config.toml",
            "[tools]\nallowed = [\"mcp__a__b__*\", \"a.none\"]\n",
        );
    });
    let home = client.home.path().to_owned();
    until_servers(&mut client, &["a"]);
    client.run("await tools.a.who()").failed();
    write_file(&home, ".cursor/mcp.json", &naming("mcpServers", &["a__b"]));
    until_servers(&mut client, &["a", "a__b"]);
    client.run("await tools.a__b.who()").fine();
    client.run("await tools.a.who()").failed();
}

#[test]
fn a_server_is_restarted_and_its_log_is_read() {
    let noisy = json!({"command": python(), "args": ["-c", NOISY, "noisy"]});
    let servers = json!({"noisy": noisy, "other": upstream(&["other"])});
    let mut client = Client::start(&servers);
    let home = client.home.path().to_owned();
    let run = |args: &[&str]| {
        let output = command(&home)
            .args(["--mcp-config", "servers.json", "servers"])
            .args(args)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let before = ["noisy", "other"].map(|server| process_of(&mut client, server));
    let log = until(&mut client, |_| {
        let log = run(&["logs", "noisy", "-n", "2"]);
        if log.is_empty() { Err("no log".to_owned()) } else { Ok(log) }
    });
    assert_eq!(log, "two [31mred\nthree\n");
    assert_eq!(run(&["logs", "other"]), "");
    assert_eq!(run(&["restart", "noisy"]), "asked every running codexec to restart noisy\n");
    check_gone(&[(before[0], "noisy".to_owned())]);
    assert_ne!(process_of(&mut client, "noisy"), before[0]);
    assert_eq!(process_of(&mut client, "other"), before[1]);
}

/// THREAT[CFG-5]: what guests may write does not name servers.
#[test]
fn cfg_5_a_guest_cannot_name_a_server_in_the_project() {
    let project = tempfile::tempdir().expect("a directory");
    let mut client = Client::with(&json!({}), |command| {
        let home = command.get_current_dir().expect("set").to_owned();
        let allowed = format!("[files]\nallowed = [{:?}]\n", project.path().display().to_string());
        write_file(&home, "state/config.toml", &allowed);
        command.current_dir(project.path());
    });
    let files = [
        ".mcp.json",
        ".cursor/mcp.json",
        ".vscode/mcp.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".github/mcp.json",
        ".zed/settings.json",
        "opencode.json",
        "opencode.jsonc",
    ];
    let write = |file| format!("mkdir -p $(dirname {file}); echo '{{}}' > {file}");
    let code = format!("{}\necho x > plain", files.map(write).join("\n"));
    let wanted = json!({"language": "bash", "code": code, "working_dir": project.path()});
    client.call("execute_code", &wanted);
    assert!(project.path().join("plain").exists(), "the guest wrote nothing");
    for file in files {
        assert!(!project.path().join(file).exists(), "{file} was written");
    }
}
