//! What users of the systems that we replace have set counts here: their variables, their files,
//! the servers that these name, and all of it as a file of ours.

mod bad;
mod files;
mod migrate;
mod servers;
mod variables;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Client, command, home_with, write_file};

/// A home directory with these files.
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

    /// The exit code, and both streams with the home directory as `HOME`.
    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
        let mut command = command(self.path());
        let output = command.args(args).envs(variables.iter().copied()).output().expect("it runs");
        let home = self.path().display().to_string();
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8").replace(&home, "HOME");
        (output.status.code().expect("a code"), text(output.stdout), text(output.stderr))
    }

    /// What it prints if all is well.
    #[track_caller]
    fn fine(&self, args: &[&str], variables: &[(&str, &str)]) -> String {
        let (code, said, complained) = self.run(args, variables);
        assert_eq!(code, 0, "{args:?} {variables:?}: {complained}");
        said
    }

    /// The one sentence that it ends with.
    #[track_caller]
    fn refused(&self, args: &[&str], variables: &[(&str, &str)], expected: &str) {
        let (code, _, complained) = self.run(args, variables);
        let told = complained.lines().last().unwrap_or_default();
        assert_eq!((code, told), (2, format!("error: {expected}").as_str()), "{variables:?}");
    }

    /// Name, state and client of each server, and why it is not used.
    fn list(&self, toolset: &str, variables: &[(&str, &str)]) -> Vec<String> {
        let args = ["--toolset", toolset, "servers", "list", "--no-check", "--json"];
        let list: Value = serde_json::from_str(&self.fine(&args, variables)).expect("JSON");
        let servers = list["servers"].as_array().expect("a list").iter();
        servers
            .map(|server| {
                let word = |key: &str| server[key].as_str().unwrap_or_default();
                format!("{} {} {}", word("name"), word("state"), word("client"))
            })
            .collect()
    }
}

/// A server that has chosen this toolset, in a home with these files. `HOME` in a value is that
/// home.
fn client(toolset: &str, variables: &[(&str, &str)], files: &[(&str, &str)]) -> Client {
    Client::with(&json!({}), |command| configure(command, toolset, variables, files))
}

fn configure(
    command: &mut Command,
    toolset: &str,
    variables: &[(&str, &str)],
    files: &[(&str, &str)],
) {
    let home = command.get_current_dir().expect("set").to_owned();
    let shown = home.display().to_string();
    for (name, text) in files {
        write_file(&home, name, &text.replace("HOME", &shown));
    }
    for (name, value) in variables {
        command.env(name, value.replace("HOME", &shown));
    }
    command.args(["--toolset", toolset]);
}

/// The names of the tools that a client is shown.
fn tool_names(client: &mut Client) -> Vec<String> {
    let list = client.request("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().expect("a list").iter();
    tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}
