//! The guides run: what they show is what happens.

mod page;
mod terminal;

use serde_json::Value;

use crate::support::command;

/// Compiled in, because a plain user may not be able to read the repository.
const GUIDES: [(&str, &str); 16] = [
    ("bash.md", include_str!("../../../../docs/guide/bash.md")),
    ("connect-a-client.md", include_str!("../../../../docs/guide/connect-a-client.md")),
    ("dashboard.md", include_str!("../../../../docs/guide/dashboard.md")),
    ("direct.md", include_str!("../../../../docs/guide/direct.md")),
    ("files.md", include_str!("../../../../docs/guide/files.md")),
    ("first-program.md", include_str!("../../../../docs/guide/first-program.md")),
    ("four-languages.md", include_str!("../../../../docs/guide/four-languages.md")),
    ("http.md", include_str!("../../../../docs/guide/http.md")),
    ("logs.md", include_str!("../../../../docs/guide/logs.md")),
    ("packages.md", include_str!("../../../../docs/guide/packages.md")),
    ("python.md", include_str!("../../../../docs/guide/python.md")),
    ("remote-servers.md", include_str!("../../../../docs/guide/remote-servers.md")),
    ("resources.md", include_str!("../../../../docs/guide/resources.md")),
    ("scripts.md", include_str!("../../../../docs/guide/scripts.md")),
    ("sessions.md", include_str!("../../../../docs/guide/sessions.md")),
    ("types.md", include_str!("../../../../docs/guide/types.md")),
];

/// The text of a page.
pub(crate) fn guide(name: &str) -> &'static str {
    GUIDES.iter().find(|(other, _)| *other == name).expect("a guide").1
}

/// A fenced block: what stands behind its fence, and its text.
pub(crate) struct Block {
    pub(crate) kind: String,
    pub(crate) text: String,
}

pub(crate) fn blocks(guide: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_inside = false;
    for line in guide.lines() {
        match (line.strip_prefix("```"), is_inside) {
            (Some(kind), false) => {
                blocks.push(Block { kind: kind.to_owned(), text: String::new() });
                is_inside = true;
            }
            (Some(_), true) => is_inside = false,
            (None, true) => {
                let block = blocks.last_mut().expect("one was begun");
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!is_inside, "a block has no end");
    blocks
}

#[test]
fn every_guide_is_tested() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
    // Whoever cannot read it here has tested the same list elsewhere.
    let Ok(files) = std::fs::read_dir(folder) else { return };
    let mut names: Vec<String> = files
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    assert_eq!(names, GUIDES.map(|(name, _)| name));
}

/// The entries that start codexec, in any of the clients' shapes.
fn own_entries(guide: &str) -> Vec<Value> {
    let parse = |block: &Block| -> Option<Value> {
        match block.kind.as_str() {
            "json" => serde_json::from_str(&block.text).ok(),
            "toml" => toml::from_str(&block.text).ok(),
            _ => None,
        }
    };
    let keys = ["mcpServers", "servers", "mcp_servers"];
    blocks(guide)
        .iter()
        .filter_map(parse)
        .filter_map(|file| keys.iter().find_map(|key| file.get(key)?.get("codexec").cloned()))
        .collect()
}

#[test]
fn the_command_lines_for_clients_are_understood() {
    let home = tempfile::tempdir().expect("a directory");
    let mut entries = own_entries(guide("connect-a-client.md"));
    assert_eq!(entries.len(), 5);
    entries.extend(own_entries(guide("direct.md")));
    assert_eq!(entries.len(), 6);
    for entry in entries {
        assert_eq!(entry["command"], "codexec");
        let args = entry["args"].as_array().expect("args").iter();
        let args: Vec<&str> = args.map(|arg| arg.as_str().expect("a string")).collect();
        // Asking for help last: everything before it has to be understood.
        let output = command(home.path()).args(&args).arg("--help").output().expect("runs");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(args.first(), Some(&"serve"));
    }
}
