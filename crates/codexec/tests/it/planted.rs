//! What a guest has planted in a directory that it may write, and what we start all the same.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::startup::{python, upstream};
use crate::support::{Client, command, home_with, write_file};

/// A user whose project holds what a guest left there.
struct PlantedProject {
    home: TempDir,
    project: PathBuf,
}

impl PlantedProject {
    fn new() -> PlantedProject {
        let home = home_with(&[("project/README", "")]);
        let project = home.path().canonicalize().expect("there").join("project");
        PlantedProject { home, project }
    }

    fn marker(&self) -> PathBuf {
        self.home.path().canonicalize().expect("there").join("ran")
    }

    /// Plants a program that tells if it is run.
    fn plant(&self, file: &str, text: &str) {
        let text = text.replace("MARKER", &self.marker().display().to_string());
        write_file(&self.project, file, &text);
        let path = self.project.join(file);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("runnable");
    }

    /// The user's own servers.
    fn name(&self, servers: &Value) {
        let text = json!({"mcpServers": servers}).to_string();
        write_file(self.home.path(), ".cursor/mcp.json", &text);
    }

    /// What `codexec` prints in the project, where `PROJECT` and `HOME` stand for these.
    fn run(&self, args: &[&str]) -> String {
        let mut command = command(self.home.path());
        let output = command.args(args).current_dir(&self.project).output().expect("it runs");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        let said = said.replace(&self.project.display().to_string(), "PROJECT");
        said.replace(&self.home.path().display().to_string(), "HOME")
    }

    fn client(&self) -> Client {
        let (home, project) = (self.home.path().to_owned(), self.project.clone());
        Client::with(&json!({}), |command| {
            command.env("HOME", &home).env("CODEXEC_HOME", home.join("state"));
            command.current_dir(&project);
        })
    }
}

/// THREAT[CFG-7]: the user's servers are not what the directory we were started in makes of them.
#[test]
fn cfg_7_packages_in_the_project_are_not_taken_for_the_users_servers() {
    let desk = PlantedProject::new();
    desk.plant("planted_pkg/__main__.py", "open('MARKER', 'w')\n");
    desk.plant("json.py", "open('MARKER', 'w')\n");
    desk.plant("node_modules/.bin/planted-pkg", "#!/bin/sh\necho ran > MARKER\n");
    desk.plant("package.json", r#"{"name": "planted-pkg", "version": "1.0.0", "bin": "x.js"}"#);
    desk.plant("x.js", "#!/bin/sh\necho ran > MARKER\n");
    let servers = |cwd: Option<&Path>| {
        let mut servers = json!({
            "module": {"command": python(), "args": ["-m", "planted_pkg"]},
            "inline": {"command": python(), "args": ["-c", "import json"]},
            "package": {"command": "npx", "args": ["--offline", "-y", "planted-pkg"]},
        });
        if let Some(cwd) = cwd {
            for server in servers.as_object_mut().expect("an object").values_mut() {
                server["cwd"] = json!(cwd);
            }
        }
        servers
    };
    desk.name(&servers(None));
    let list = desk.run(&["servers", "list"]);
    assert!(!desk.marker().exists(), "{list}");
    desk.name(&servers(Some(desk.project.as_path())));
    let list = desk.run(&["servers", "list"]);
    assert!(!desk.marker().exists(), "{list}");
    // They would be found there by whoever lets them.
    let allowed = format!("[files]\nrun-from = [{:?}]\n", desk.project.display().to_string());
    write_file(desk.home.path(), "state/config.toml", &allowed);
    let list = desk.run(&["servers", "list"]);
    assert!(desk.marker().exists(), "the test plants nothing that runs: {list}");
}

/// THREAT[CFG-7]: others start at home, and say where if that is not what they mean.
#[test]
fn cfg_7_a_users_server_starts_at_home_or_where_it_says() {
    let desk = PlantedProject::new();
    let home = desk.home.path().canonicalize().expect("there");
    let mut elsewhere = upstream(&["elsewhere"]);
    elsewhere["cwd"] = json!("/");
    desk.name(&json!({
        "plain": upstream(&["plain"]),
        "elsewhere": elsewhere,
        "dotted": {"command": "x", "args": ["--root", "./data"]},
        "script": {"command": "node", "args": ["server.js"]},
        "beside": {"command": "bin/server"},
        "lost": {"command": "x", "cwd": "somewhere"},
    }));
    let mut client = desk.client();
    let code = "const at = async (name) => (await tools[name].who()).cwd;
        return [await at('plain'), await at('elsewhere')];";
    let found: Value = serde_json::from_str(&client.run(code).fine()).expect("JSON");
    assert_eq!(found, json!([home, "/"]));
    let list = desk.run(&["servers", "list", "--no-check"]);
    let why = "a relative path, and the server starts in your home directory; write an absolute \
               path, or set the directory with `cwd`";
    for expected in [
        format!("server \"dotted\": its argument \"./data\" is {why}\n"),
        format!("server \"script\": its argument \"server.js\" is {why}\n"),
        format!("server \"beside\": `command` is {why}\n"),
        "server \"lost\": `cwd` is not an absolute path; start it with `/` or `~/`\n".to_owned(),
    ] {
        assert!(list.contains(&expected), "{expected}{list}");
    }
}

/// THREAT[CFG-8]: a server whose program guests can write is refused, and everybody says so.
#[test]
fn cfg_8_a_server_from_a_directory_of_guests_is_refused_unless_named() {
    let desk = PlantedProject::new();
    desk.plant("server", "#!/bin/sh\necho ran > MARKER\n");
    desk.name(&json!({"local": {"command": desk.project.join("server")}}));
    let why = "\"PROJECT/server\" is not started: PROJECT/server lies in PROJECT, where code may \
               write; move it, or name it with `files.run-from` in config.toml\n";
    let said = desk.run(&["servers", "list"]);
    assert!(said.contains(&format!("local: it did not start: {why}")), "{said}");
    let said = desk.run(&["servers", "list", "--no-check"]);
    assert!(said.contains(" refused ") && said.contains(&format!("local: {why}")), "{said}");
    let said = desk.run(&["doctor"]);
    assert!(said.contains(&format!("  REFUSED  {:<18} {why}", "local")), "{said}");
    assert!(!desk.marker().exists());
    write_file(
        desk.home.path(),
        "state/config.toml",
        "[files]\nrun-from = [\"~/project/server\"]\n",
    );
    desk.run(&["servers", "list"]);
    assert!(desk.marker().exists(), "what the user named was not started");
}

/// THREAT[CFG-8]: the same for interpreters and virtual environments, also those on PATH.
#[test]
fn cfg_8_an_interpreter_from_a_directory_of_guests_is_refused_unless_named() {
    let desk = PlantedProject::new();
    let made = std::process::Command::new("/usr/bin/env")
        .args(["python3", "-m", "venv", "--without-pip"])
        .arg(desk.project.join(".venv"))
        .output()
        .expect("python3 starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let packages = std::fs::read_dir(desk.project.join(".venv/lib")).expect("there").flatten();
    let version = packages.map(|entry| entry.file_name()).next().expect("one");
    let version = version.to_str().expect("UTF-8");
    desk.plant(
        &format!(".venv/lib/{version}/site-packages/evil.pth"),
        "import sys; open('MARKER', 'w')\n",
    );
    let settings = "[python]\nvenv = \"~/project/.venv\"\n";
    write_file(desk.home.path(), "state/config.toml", settings);
    let why = "PROJECT/.venv/bin/python lies in PROJECT, where code may write, and is not started; \
               name another in config.toml, or this one with `files.run-from` there\n";
    let said = desk.run(&["exec", "-l", "python", "1"]);
    assert!(said.contains(why), "{said}");
    let said = desk.run(&["doctor"]);
    assert!(said.contains(&format!("  NONE     {:<18} {why}", "python")), "{said}");
    write_file(desk.home.path(), "state/config.toml", "");
    let path = std::env::var("PATH").expect("set");
    let mut on_path = command(desk.home.path());
    on_path.args(["exec", "-l", "python", "1"]).current_dir(&desk.project);
    on_path.env("PATH", format!("{}/.venv/bin:{path}", desk.project.display()));
    let output = on_path.output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(
        said.contains(
            "PROJECT/.venv/bin/python3 lies in"
                .replace("PROJECT", &desk.project.display().to_string())
                .as_str()
        ),
        "{said}"
    );
    assert!(!desk.marker().exists(), "what was planted has run");
    let allowed = format!("[files]\nrun-from = [\"~/project/.venv\"]\n{settings}");
    write_file(desk.home.path(), "state/config.toml", &allowed);
    let code = "import sys\nsys.prefix != sys.base_prefix";
    assert_eq!(desk.run(&["exec", "-l", "python", code]), "true\n");
}
