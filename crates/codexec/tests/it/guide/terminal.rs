//! Types the commands of the guides at a terminal, in order, on an empty machine: a new home, and
//! nothing on the path but codexec, the system and the programs that the guides ask for.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{Block, GUIDES, blocks, guide};
use crate::support::{codexec, world};

/// What stands for the package managers, which would download the servers: they start the ones that
/// are installed.
const NPX: &str = "#!/bin/sh
while [ \"${1#@modelcontextprotocol/}\" = \"$1\" ]; do shift; done
name=mcp-${1#*/}; shift
exec WORLD/npm/node_modules/.bin/node WORLD/npm/node_modules/.bin/$name \"$@\"
";
const UVX: &str = "#!/bin/sh
while [ \"${1#mcp-}\" = \"$1\" ]; do shift; done
name=$1; shift
exec WORLD/venv/bin/$name \"$@\"
";
/// Runs a command line at a terminal, with `y` as the answer to every question.
const AT_TERMINAL: &str = "\
import os, pty, sys
pid, master = pty.fork()
if not pid:
    os.execvp('bash', ['bash', '-c', sys.argv[1]])
os.write(master, b'y\\n' * 8)
try:
    while data := os.read(master, 4096):
        sys.stdout.buffer.write(data)
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

/// Commands that cannot run here, by their beginning, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("codexec packages install", "needs a package index; `packages::` has one of its own"),
    ("codexec packages remove", "nothing is installed"),
    ("python3 -m venv", "the packages of the next line need an index"),
    ("~/venvs/agents/bin/pip install", "needs a package index"),
    ("codexec servers add NAME", "a pattern, not a command"),
    ("codexec servers disable NAME", "a pattern, not a command"),
    ("codexec servers approve NAME", "a pattern, not a command"),
    ("codexec servers login", "needs a browser and a server that asks for a login"),
    ("codexec exec --working-dir DIR", "a pattern, not a command"),
    ("codexec logs show ID", "a pattern, not a command"),
    ("codexec logs pears", "finds nothing on an empty machine, which is exit code 1"),
    ("codexec logs --follow", "does not end"),
    ("codexec serve ", "does not end; `http::` starts it"),
    ("codexec sessions open", "does not end; `cli::terminal` types into it"),
    ("codexec exec", "a name, not a command"),
    ("curl ", "needs a server and a token; `http::rest` runs these"),
    ("codexec doctor", "fails where a layer is missing; `cli::doctor` reads it"),
];

/// A reader with an empty home.
struct Newcomer {
    home: TempDir,
    /// Where the last command has left the shell.
    directory: PathBuf,
}

impl Newcomer {
    fn new(world: &Path) -> Newcomer {
        let home = tempfile::tempdir().expect("a directory");
        let bin = home.path().join("bin");
        std::fs::create_dir(&bin).expect("made");
        symlink(codexec(), bin.join("codexec")).expect("linked");
        for (name, script) in [("npx", NPX), ("uvx", UVX)] {
            let program = bin.join(name);
            let script = script.replace("WORLD", &world.display().to_string());
            std::fs::write(&program, script).expect("written");
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&program, mode).expect("executable");
        }
        let directory = home.path().to_owned();
        Newcomer { home, directory }
    }

    /// A page with folders of this home instead of those that everybody shares.
    fn page(&self, name: &str) -> String {
        guide(name).replace("/tmp/notes", &self.home.path().join("notes").display().to_string())
    }

    /// Writes a file that a page tells its reader to write.
    fn save(&self, name: &str, text: &str) {
        let project = self.home.path().join("first-project");
        std::fs::create_dir_all(&project).expect("made");
        std::fs::write(project.join(name), text).expect("written");
    }

    /// Runs a command line where the last one has left the shell; returns what it printed.
    fn type_in(&mut self, line: &str) -> Result<String, String> {
        let left = self.home.path().join("left");
        let line = format!("{line}\ncode=$?; pwd > {}; exit $code", left.display());
        let path =
            format!("{}:/usr/local/bin:/usr/bin:/bin", self.home.path().join("bin").display());
        // Only a question needs a terminal, which mixes standard output and error.
        let program: &[&str] = match line.starts_with("codexec servers approve") {
            true => &["python3", "-c", AT_TERMINAL],
            false => &["bash", "-c"],
        };
        let output = Command::new(program[0])
            .args(&program[1..])
            .arg(&line)
            .env_clear()
            .envs([("HOME", self.home.path().as_os_str()), ("PATH", path.as_ref())])
            .envs([("TERM", "dumb"), ("NO_COLOR", "1"), ("COLUMNS", "200")])
            .stdin(Stdio::null())
            .current_dir(&self.directory)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
        self.directory = std::fs::read_to_string(&left).expect("written").trim().into();
        match output.status.success() {
            true => Ok(said),
            false => Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr))),
        }
    }
}

/// The commands of a page: the lines of its blocks for a shell, and those in its sentences.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut block: Option<bool> = None;
    // A backslash continues a command on the next line.
    for line in page.replace("\\\n", "").lines() {
        match (line.strip_prefix("```"), block) {
            (Some(kind), None) => block = Some(kind == "sh"),
            (Some(_), Some(_)) => block = None,
            (None, Some(true)) => commands.push(line.to_owned()),
            (None, Some(false)) => {}
            (None, None) => {
                let spans = line.split('`').skip(1).step_by(2);
                let is_command =
                    |span: &&str| span.starts_with("codexec ") || span.contains("| codexec ");
                commands.extend(spans.filter(is_command).map(ToOwned::to_owned));
            }
        }
    }
    commands
}

fn reason(command: &str) -> Option<&'static str> {
    let is_it = |start: &str| match start {
        "codexec exec" | "codexec doctor" => command == start,
        start => command.starts_with(start),
    };
    NOT_RUN.iter().find(|(start, _)| is_it(start)).map(|(_, reason)| *reason)
}

fn first_block<'a>(page: &'a [Block], kind: &str) -> &'a str {
    &page.iter().find(|block| block.kind == kind).expect("a block").text
}

#[test]
fn every_command_of_the_guides_runs_on_an_empty_machine() {
    let Some(world) = world() else { return };
    let mut reader = Newcomer::new(&world);
    // What the pages tell their reader to write before a command.
    let first = blocks(&reader.page("first-program.md"));
    let job = blocks(&reader.page("four-languages.md"));
    let python = blocks(guide("python.md"));
    reader.save(".mcp.json", first_block(&first, "json"));
    reader.save("first.ts", first_block(&first, "ts"));
    reader.save("job.ts", first_block(&job, "ts"));
    reader.save("sales.csv", first_block(&python, "csv sales.csv"));
    reader.save("notes.txt", "three short words\n");
    reader.save("script.py", "6 * 7\n");
    let run_job = commands(&reader.page("four-languages.md")).swap_remove(0);
    let shown: BTreeMap<&str, &str> = BTreeMap::from([
        ("codexec exec first.ts", first_block(&first, "json expect")),
        (&*run_job, first_block(&job, "json expect")),
        ("codexec exec -l python '6 * 7'", "42"),
        ("codexec exec script.py", "42"),
        ("cat notes.txt | codexec exec -l bash 'wc -w'", "3"),
    ]);
    // The project of the first guide is the one of all others.
    let mut names: Vec<&str> = GUIDES.iter().map(|(name, _)| *name).collect();
    names.sort_by_key(|name| *name != "first-program.md");
    let (mut wrong, mut ran) = (Vec::new(), 0);
    for name in names {
        for command in commands(&reader.page(name)) {
            if reason(&command).is_some() {
                continue;
            }
            ran += 1;
            let said = match reader.type_in(&command) {
                Ok(said) => said,
                Err(said) => {
                    wrong.push(format!("{name}: {command}\n{said}"));
                    continue;
                }
            };
            let is_as_shown = shown.get(command.as_str()).is_none_or(|expected| {
                let json = |text: &str| serde_json::from_str::<Value>(text).ok();
                json(&said).is_some_and(|said| json(expected) == Some(said))
                    || said.trim() == expected.trim()
            });
            if !is_as_shown {
                wrong.push(format!("{name}: {command}\ngave {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n----\n"));
    assert!(ran >= 20, "only {ran} commands were found");
    let all: Vec<String> = GUIDES.iter().flat_map(|(_, page)| commands(page)).collect();
    let unused = NOT_RUN.iter().filter(|(start, _)| !all.iter().any(|c| c.starts_with(start)));
    let unused: Vec<&str> = unused.map(|(start, _)| *start).collect();
    assert!(unused.is_empty(), "no guide has these commands: {unused:?}");
}
