//! Runs the programs of a page, one after the other, as its reader would.
//!
//! The word behind a fence says what a block is: `ts`, `py`, `bash` and `mjs` are programs, `json`,
//! `toml` and `csv` are files; `text expect` and `json expect` are what the programs since the last
//! of these give, `json resource` lists the files that the last program left. A file that is named
//! behind the fence is there for the programs that follow, which then work in its directory; as
//! `config.toml` it holds the settings of the whole page. `py session` is code for the session of
//! the page. Of `sh`, the commands of codexec itself have to be understood here; `terminal` runs
//! them.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Block, GUIDES, blocks, guide};
use crate::support::{Client, codexec, command, keep_settings, png_size, without_ids};
use crate::world::World;

/// What a program gave.
struct Gave {
    text: String,
    id: String,
}

struct Reader {
    client: Client,
    /// Where the page's files are, once there is one.
    project: PathBuf,
    has_files: bool,
    input: Value,
}

impl Reader {
    fn new(world: &World, page: &[Block]) -> Reader {
        let settings = page.iter().find(|block| block.kind == "toml config.toml");
        let mut project = PathBuf::new();
        let client = world.client_with(|command| {
            let home = command.get_current_dir().expect("set").to_owned();
            project = home.join("project");
            std::fs::create_dir(&project).expect("made");
            command.current_dir(&project);
            if let Some(settings) = settings {
                keep_settings(&home, &settings.text);
                // The virtual environment that the page names.
                std::fs::create_dir(home.join("venvs")).expect("made");
                symlink(world.venv(), home.join("venvs/agents")).expect("linked");
            }
        });
        let input = json!({"folder": world.folder.path()});
        Reader { client, project, has_files: false, input }
    }

    fn run(&mut self, language: &str, code: &str, is_in_session: bool) -> Gave {
        let mut arguments = json!({"language": language, "code": code, "input": self.input});
        if is_in_session {
            arguments["session"] = json!("guide");
        } else if self.has_files {
            arguments["working_dir"] = json!(self.project);
        }
        let call = json!({"name": "execute_code", "arguments": arguments});
        let reply = self.client.request("tools/call", &call);
        let content = reply["result"]["content"].as_array().expect("content").iter();
        // The text has the addresses.
        let content = content.filter(|block| block["type"] != "resource_link");
        let shown = content.map(|block| match block["type"].as_str() {
            Some("text") => without_ids(block["text"].as_str().expect("text")),
            Some("image") => format!("{} {}", block["mimeType"].as_str().expect("a type"), {
                let (width, height) = png_size(block["data"].as_str().expect("data"));
                format!("{width}x{height}")
            }),
            other => panic!("{other:?}"),
        });
        let text = shown.collect::<Vec<_>>().join("\n");
        let id = &reply["result"]["_meta"]["codexec/execution"]["id"];
        Gave { text, id: id.as_str().unwrap_or_default().to_owned() }
    }

    /// The list of the files that an execution left.
    fn artifacts(&mut self, id: &str) -> Value {
        let uri = format!("codexec://executions/{id}/artifacts");
        let read = self.client.request("resources/read", &json!({"uri": uri}));
        let text = read["result"]["contents"][0]["text"].as_str().expect("text");
        serde_json::from_str(&text.replace(id, "exec_1")).expect("JSON")
    }
}

fn language(kind: &str) -> Option<&'static str> {
    match kind.strip_suffix(" session").unwrap_or(kind) {
        "ts" => Some("typescript"),
        "py" => Some("python"),
        "bash" => Some("bash"),
        "mjs" => Some("node"),
        _ => None,
    }
}

/// Runs a page; gives how many programs it has.
#[track_caller]
fn check(name: &str) -> usize {
    let page = blocks(guide(name));
    let Some(world) = World::find() else { return 0 };
    let mut reader = Reader::new(&world, &page);
    let (mut ran, mut waiting, mut last) = (0, Vec::new(), String::new());
    let mut wrong = Vec::new();
    for Block { kind, text } in &page {
        if let Some(language) = language(kind) {
            let gave = reader.run(language, text, kind.ends_with(" session"));
            last = gave.id;
            waiting.push((text, gave.text));
            ran += 1;
            continue;
        }
        match kind.split_once(' ') {
            Some(("text", "expect")) => {
                let expected = text.trim_end();
                let others = waiting.drain(..).filter(|(_, gave)| gave != expected);
                wrong.extend(others.map(|(code, gave)| format!("{code}gave\n{gave}")));
            }
            Some(("json", "expect")) => {
                let expected: Value = serde_json::from_str(text).expect("JSON");
                let others = waiting.drain(..).filter(|(_, gave)| {
                    serde_json::from_str::<Value>(gave).ok().as_ref() != Some(&expected)
                });
                wrong.extend(others.map(|(code, gave)| format!("{code}gave\n{gave}")));
            }
            Some(("json", "resource")) => {
                let list = reader.artifacts(&last);
                if serde_json::from_str::<Value>(text).ok().as_ref() != Some(&list) {
                    wrong.push(format!("the list is\n{list:#}"));
                }
            }
            Some((_, "config.toml")) | None => {}
            Some((_, file)) => {
                std::fs::write(reader.project.join(file), text).expect("written");
                reader.has_files = true;
            }
        }
    }
    assert!(waiting.is_empty(), "{name}: a program has no expectation");
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n----\n"));
    ran
}

#[test]
fn the_first_program_gives_what_the_guide_says() {
    let ran = check("first-program.md");
    assert!(ran <= 1, "{ran}");
}

#[test]
fn the_same_job_gives_the_same_in_four_languages() {
    let page = blocks(guide("four-languages.md"));
    let programs: Vec<&str> = page.iter().filter_map(|block| language(&block.kind)).collect();
    assert_eq!(programs, ["typescript", "python", "bash", "node"]);
    check("four-languages.md");
}

#[test]
fn the_python_guide_runs() {
    check("python.md");
}

#[test]
fn the_bash_guide_runs() {
    check("bash.md");
}

#[test]
fn the_guide_to_files_runs() {
    check("files.md");
}

#[test]
fn the_guide_to_types_runs() {
    check("types.md");
}

#[test]
fn the_guide_to_resources_runs() {
    check("resources.md");
}

#[test]
fn the_guide_to_sessions_runs() {
    check("sessions.md");
}

#[test]
fn the_guide_to_scripts_runs() {
    check("scripts.md");
}

#[test]
fn the_guide_to_logs_runs() {
    check("logs.md");
}

/// Every command of ours in a block for a shell is understood: asked for help last, it gives help.
#[track_caller]
fn check_commands(guide: &str, text: &str) {
    let home = tempfile::tempdir().expect("a directory");
    let commands = text.lines().flat_map(|line| line.split(" | "));
    for arguments in commands.filter_map(|part| part.trim().strip_prefix("codexec ")) {
        let mut shell = std::process::Command::new("sh");
        let ours = command(home.path());
        shell.envs(ours.get_envs().filter_map(|(key, value)| Some((key, value?))));
        shell.arg("-c").arg(format!("exec \"$0\" {arguments} --help")).arg(codexec());
        let output = shell.current_dir(home.path()).output().expect("sh runs");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && told.contains("Usage: "),
            "{guide}: {arguments}: {told}"
        );
    }
}

#[test]
fn every_block_is_of_a_kind_that_is_tested() {
    for (name, guide) in GUIDES {
        for Block { kind, text } in blocks(guide) {
            match kind.split(' ').next().unwrap_or_default() {
                "json" => {
                    serde_json::from_str::<Value>(&text)
                        .unwrap_or_else(|error| panic!("{name}: {error} in {text}"));
                }
                "toml" => {
                    toml::from_str::<Value>(&text)
                        .unwrap_or_else(|error| panic!("{name}: {error} in {text}"));
                }
                "sh" => check_commands(name, &text),
                "csv" | "text" => assert!(kind.contains(' '), "{name}: {kind}"),
                other => assert!(language(other).is_some(), "{name}: {other:?} is not tested"),
            }
        }
    }
}
