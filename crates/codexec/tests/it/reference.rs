//! The reference pages are what the binary says. `CODEXEC_UPDATE=1` writes them anew.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Client, command};

#[test]
fn the_command_line_is_documented_as_it_is() {
    let home = tempfile::tempdir().expect("a directory");
    let mut page = String::from(
        "# Command line\n\nMade from `--help`; exit codes: 0 done, 1 the guest failed, 2 we failed.\n\
         `codexec exec` ends with the exit code of the program in Python, Bash and Node.js.\n",
    );
    for words in [
        &[][..],
        &["serve"],
        &["exec"],
        &["code"],
        &["code", "exec"],
        &["code", "scripts", "list"],
        &["scripts"],
        &["scripts", "list"],
        &["scripts", "search"],
        &["scripts", "show"],
        &["scripts", "save"],
        &["scripts", "run"],
        &["scripts", "delete"],
        &["scripts", "versions"],
        &["logs"],
        &["logs", "show"],
        &["sessions"],
        &["sessions", "list"],
        &["sessions", "open"],
        &["packages"],
        &["packages", "install"],
        &["packages", "list"],
        &["packages", "remove"],
        &["tools"],
        &["tools", "list"],
        &["tools", "search"],
        &["tools", "schema"],
        &["servers"],
        &["servers", "list"],
        &["servers", "add"],
        &["servers", "remove"],
        &["servers", "enable"],
        &["servers", "disable"],
        &["servers", "import"],
        &["servers", "logs"],
        &["servers", "restart"],
        &["servers", "login"],
        &["servers", "approve"],
        &["token"],
        &["token", "create"],
        &["token", "list"],
        &["token", "revoke"],
        &["migrate"],
        &["doctor"],
    ] {
        let output = command(home.path()).args(words).arg("--help").output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let name = format!("codexec {}", words.join(" "));
        page.push_str(&format!("\n## {}\n\n```text\n{}\n```\n", name.trim(), text.trim_end()));
    }
    compare(
        "docs/reference/command-line.md",
        include_str!("../../../../docs/reference/command-line.md"),
        &page,
    );
}

#[test]
fn the_mcp_tools_are_documented_as_they_are() {
    let mut client = Client::start(&json!({}));
    let list = client.request("tools/list", &json!({}));
    let mut page = String::from("# MCP tools\n\nMade from `tools/list`, toolset `compact`.\n");
    for tool in list["result"]["tools"].as_array().expect("a list") {
        let (name, description) = (&tool["name"], &tool["description"]);
        page.push_str(&format!("\n## {}\n\n{}\n", text(name), text(description)));
        let schema = serde_json::to_string_pretty(&tool["inputSchema"]).expect("JSON");
        page.push_str(&format!("\n```json\n{schema}\n```\n"));
    }
    compare(
        "docs/reference/mcp-tools.md",
        include_str!("../../../../docs/reference/mcp-tools.md"),
        &page,
    );
}

#[test]
fn the_settings_of_other_systems_are_documented_as_they_are() {
    let home = tempfile::tempdir().expect("a directory");
    let output = command(home.path()).args(["migrate", "--list"]).output().expect("it runs");
    compare(
        "docs/reference/seed-settings.md",
        include_str!("../../../../docs/reference/seed-settings.md"),
        &String::from_utf8(output.stdout).expect("text"),
    );
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[track_caller]
fn compare(file: &str, written: &str, said: &str) {
    if written == said {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if std::env::var_os("CODEXEC_UPDATE").is_some() {
        std::fs::write(root.join(file), said).expect("written");
    } else {
        panic!("{file} is not what the binary says; run the tests with CODEXEC_UPDATE=1");
    }
}

/// The tables that say what became of each statement of the systems that codexec replaces: every
/// row has one of three states, and every test that it names exists.
#[test]
fn the_proofs_of_the_seeds_pages_exist() {
    let pages = [
        include_str!("../../../../docs/reference/seed-000.md"),
        include_str!("../../../../docs/reference/seed-001.md"),
        include_str!("../../../../docs/reference/seed-003.md"),
        include_str!("../../../../docs/reference/seed-004.md"),
    ];
    let list = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--list", "--format", "terse"])
        .output()
        .expect("it runs");
    let list = String::from_utf8(list.stdout).expect("text");
    let mut names: Vec<&str> =
        list.lines().filter_map(|line| line.strip_suffix(": test")?.rsplit("::").next()).collect();
    let cases = include_str!("seed_mcpproxy/cases.toml").lines();
    names.extend(cases.filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')));
    for page in pages {
        let table =
            page.lines().skip_while(|line| *line != "## Every statement of its documentation");
        let table = table.skip(1).take_while(|line| !line.starts_with("## "));
        let rows: Vec<&str> = table.filter(|line| line.starts_with("| ")).skip(1).collect();
        assert!(rows.len() > 25, "{}", rows.len());
        for row in rows {
            let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
            let [.., state, proof] = cells.as_slice() else { panic!("{row}") };
            assert!(["holds", "differs", "not yet"].contains(state), "{row}");
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let is_test = |word: &&str| word.split('_').count() > 3 && word.chars().all(is_name);
            for name in proof.split('`').skip(1).step_by(2).filter(is_test) {
                assert!(names.contains(&name), "there is no test {name}: {row}");
            }
        }
    }
}
