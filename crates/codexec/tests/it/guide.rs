//! The guides run: what they show is what happens.

use serde_json::Value;

use crate::support::command;
use crate::world::{World, value};

/// Compiled in, because a plain user may not be able to read the repository.
const GUIDES: [(&str, &str); 2] = [
    ("connect-a-client.md", include_str!("../../../../docs/guide/connect-a-client.md")),
    ("first-program.md", include_str!("../../../../docs/guide/first-program.md")),
];

/// A fenced block: what stands behind its fence, and its text.
struct Block {
    kind: String,
    text: String,
}

fn blocks(guide: &str) -> Vec<Block> {
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

#[test]
fn programs_in_guides_give_what_the_guide_says() {
    let Some(world) = World::find() else { return };
    let mut ran = 0;
    for (name, guide) in GUIDES {
        for pair in blocks(guide).windows(2) {
            let [program, expected] = pair else { continue };
            if program.kind != "ts" || expected.kind != "json expect" {
                continue;
            }
            let expected: Value = serde_json::from_str(&expected.text).expect("JSON");
            assert_eq!(value(&mut world.client(), &program.text), expected, "{name}");
            ran += 1;
        }
    }
    assert_eq!(ran, 1);
    let mut written: Vec<_> = std::fs::read_dir(world.folder.path())
        .expect("the folder")
        .flatten()
        .map(|file| std::fs::read_to_string(file.path()).expect("text"))
        .collect();
    written.sort();
    assert_eq!(written, ["0", "1", "16", "25", "36", "4", "49", "64", "81", "9"]);
}

#[test]
fn every_block_is_of_a_kind_that_is_tested() {
    for (name, guide) in GUIDES {
        for Block { kind, text } in blocks(guide) {
            match kind.as_str() {
                "json" | "json expect" => {
                    serde_json::from_str::<Value>(&text)
                        .unwrap_or_else(|error| panic!("{name}: {error} in {text}"));
                }
                "toml" => {
                    toml::from_str::<Value>(&text)
                        .unwrap_or_else(|error| panic!("{name}: {error} in {text}"));
                }
                "ts" => {}
                other => panic!("{name}: a block of kind {other:?} is not tested"),
            }
        }
    }
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
    let entries = own_entries(GUIDES[0].1);
    assert_eq!(entries.len(), 5);
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
