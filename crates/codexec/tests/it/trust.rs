//! Quarantine and lists on disk, as a user meets them: at the command line and at once.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::attacks::host::within;
use crate::attacks::recorder::Recorders;
use crate::startup::wait_until_ready;
use crate::support::{Client, PATIENCE, command, keep_settings};

/// A home with one server, which lists what it is told to.
struct Home {
    folder: TempDir,
    recorders: Recorders,
}

impl Home {
    fn new(tools: &[(&str, &str)]) -> Home {
        let folder = tempfile::tempdir().expect("a directory");
        let home = Home { recorders: Recorders::new(folder.path()), folder };
        let entry = home.lists(tools);
        let servers = json!({"mcpServers": {"hub": entry}});
        std::fs::write(home.path().join("servers.json"), servers.to_string()).expect("written");
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// From its next start on.
    fn lists(&self, tools: &[(&str, &str)]) -> Value {
        let tool = |(name, description): &(&str, &str)| {
            let schema = json!({"type": "object"});
            json!({"name": name, "description": description, "inputSchema": schema})
        };
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        self.recorders.entry("hub", &json!({ "tools": tools }))
    }

    /// How often the server was started.
    fn starts(&self) -> usize {
        let received = self.recorders.received("hub");
        received.iter().filter(|one| one.method == "initialize").count()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(self.path());
        command.args(args).args(["--mcp-config", "servers.json"]);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).stdin(std::process::Stdio::null()).output().expect("codexec runs")
    }

    #[track_caller]
    fn check(&self, args: &[&str], code: i32, stdout: &str, stderr: &str) {
        let output = self.run(args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let actual = (output.status.code(), text(&output.stdout), text(&output.stderr));
        assert_eq!(actual, (Some(code), stdout.to_owned(), stderr.to_owned()), "{args:?}");
    }

    fn names(&self, args: &[&str]) -> Vec<String> {
        let output = self.run(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tools: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }
}

#[test]
fn a_change_is_shown_and_used_only_when_the_user_agrees() {
    let home = Home::new(&[("get", "Gets it."), ("put", "Puts it.")]);
    let list = ["tools", "list", "--refresh", "--json"];
    assert_eq!(home.names(&list), ["hub.get", "hub.put"]);
    home.check(&["servers", "approve"], 0, "nothing waits for approval\n", "");
    home.lists(&[("get", "Gets it.\nAnd sends it on.\u{200b}"), ("put", "Puts it.")]);
    assert_eq!(home.names(&list), ["hub.put"]);
    let output = home.run(&["tools", "list", "--refresh"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let hint = "server hub: 1 of its tools wait for approval; review them with `codexec servers \
                approve hub`\n";
    assert_eq!(said, hint);
    let shown = "server hub: 1 tool waits for approval\n\n  get has changed\n    ! contains \
                 invisible characters, shown as \\u{..}\n    + description: And sends \
                 it on.\\u{200b}\n";
    let hint = "nothing was approved: pass --yes, or run this at a terminal\n";
    home.check(&["servers", "approve"], 1, shown, hint);
    home.check(&["servers", "approve", "hub"], 1, shown, hint);
    let wrong = "error: no tool \"put\" waits for approval; those that wait: get\n";
    home.check(&["servers", "approve", "hub", "--tool", "put"], 2, "", wrong);
    let wrong = "error: no server \"hup\"; the servers are hub\n";
    home.check(&["servers", "approve", "hup"], 2, "", wrong);
    assert_eq!(home.names(&list), ["hub.put"]);
    let approved = format!("{shown}server hub: approved\n");
    home.check(&["servers", "approve", "hub", "--tool", "get", "--yes"], 0, &approved, "");
    assert_eq!(home.names(&list), ["hub.get", "hub.put"]);
}

#[test]
fn where_everything_waits_the_list_of_servers_says_so() {
    let home = Home::new(&[("get", "Gets it.")]);
    keep_settings(home.path(), "[gateway]\ntrust = 'manual'");
    let list = "NAME  TRANSPORT  STATE  TOOLS  WHERE\n\
                hub   stdio      held   0      servers.json:1 (named)\n\n\
                hub: 1 of its tools wait for approval; review them with `codexec servers approve \
                hub`\n";
    home.check(&["servers", "list"], 0, list, "");
    assert!(home.run(&["servers", "approve", "hub", "--yes"]).status.success());
    let list = "NAME  TRANSPORT  STATE  TOOLS  WHERE\n\
                hub   stdio      ready  1      servers.json:1 (named)\n";
    home.check(&["servers", "list"], 0, list, "");
}

/// The answer is typed, and only `y` is one.
#[test]
fn a_terminal_is_asked() {
    let home = Home::new(&[("get", "Gets it.")]);
    let list = ["tools", "list", "--refresh", "--json"];
    home.names(&list);
    home.lists(&[("get", "Gets more.")]);
    assert_eq!(home.names(&list), [] as [&str; 0]);
    let program = "import os, pty, sys\n\
         pid, master = pty.fork()\n\
         if not pid: os.execv(sys.argv[2], sys.argv[2:])\n\
         os.write(master, sys.argv[1].encode())\n\
         said = b''\n\
         try:\n\
         \x20   while data := os.read(master, 4096): said += data\n\
         except OSError: pass\n\
         sys.stdout.write(said.decode())\n\
         sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";
    let ask = |answer: &str| {
        let codexec = home.command(&["servers", "approve", "hub"]);
        let mut python = Command::new("python3");
        python.args(["-c", program, answer]).arg(codexec.get_program()).args(codexec.get_args());
        python.envs(codexec.get_envs().filter_map(|(key, value)| Some((key, value?))));
        python.env_remove("MCP_CONFIG_PATH").env_remove("CLAUDE_CONFIG_DIR");
        let output = python.current_dir(home.path()).output().expect("python3 runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("Let code use these tools of hub? [y/N]"), "{said}");
        output.status.code()
    };
    assert_eq!(ask("\n"), Some(1));
    assert_eq!(ask("n\n"), Some(1));
    assert_eq!(home.names(&list), [] as [&str; 0]);
    assert_eq!(ask("y\n"), Some(0));
    assert_eq!(home.names(&list), ["hub.get"]);
}

#[test]
fn tools_are_listed_from_the_disk_while_that_is_fresh() {
    let home = Home::new(&[("get", "Gets it.")]);
    assert_eq!(home.names(&["tools", "list", "--json"]), ["hub.get"]);
    assert_eq!(home.starts(), 1);
    home.lists(&[("get", "Gets it."), ("more", "Gets more.")]);
    assert_eq!(home.names(&["tools", "list", "--json"]), ["hub.get"]);
    assert_eq!(home.names(&["tools", "search", "gets", "--json"]), ["hub.get"]);
    let schema = home.run(&["tools", "schema", "hub.get", "--json"]);
    assert!(schema.status.success());
    assert_eq!(home.starts(), 1, "nobody was started for it");
    let list = ["tools", "list", "--refresh", "--json"];
    assert_eq!(home.names(&list), ["hub.get", "hub.more"]);
    assert_eq!(home.starts(), 2);
}

/// The lists of the last time answer while every server still hangs.
#[test]
fn a_search_does_not_wait_for_servers_that_were_seen_before() {
    let folder = tempfile::tempdir().expect("a directory");
    let recorders = Recorders::new(folder.path());
    let names = ["one", "two", "three"];
    let entries = names.map(|name| (name.to_owned(), recorders.entry(name, &json!({}))));
    let mut client = Client::start(&Value::Object(entries.into_iter().collect()));
    wait_until_ready(&mut client, &names);
    let search = json!({"query": "echo", "limit": 3, "detail": "names"});
    let before = client.call("search_tools", &search).fine();
    assert_eq!(before.lines().count(), 3, "{before}");
    for name in names {
        recorders.entry(name, &json!({"on": {"initialize": [{"do": "hang"}]}}));
    }
    client.restart(|_| {});
    assert_eq!(client.call("search_tools", &search).fine(), before);
    let schema = client.run("return (await getToolSchema('two.echo')).name").fine();
    assert_eq!(schema, "two.echo");
    let are_starting = within(PATIENCE, || {
        let health = client.call("health", &json!({})).fine();
        let count = |state: &str| health.matches(&format!("\"state\":\"{state}\"")).count();
        // After a few seconds without an answer, a server that starts is called hung.
        count("starting") + count("hung") == 3
    });
    assert!(are_starting, "they are started behind the answer");
}
