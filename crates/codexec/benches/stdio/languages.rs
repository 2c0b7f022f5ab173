//! Python, Bash and Node.js, each compared with the bare program in the same run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, keep_settings};
use crate::{Bench, ms, percentile, sample};

const GROUPED: &str = "import pandas as pd
table = pd.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]})
str(table.groupby('a')['b'].sum().to_dict())";
/// A pause between two executions of Node.js, so that the next worker is ready.
const SOON: Duration = Duration::from_millis(300);

/// A small program in a language, and the command that runs it without codexec.
struct Case {
    language: &'static str,
    code: &'static str,
    expected: &'static str,
    bare: Vec<String>,
}

impl Case {
    fn run(&self, client: &mut Client) {
        let call = json!({"language": self.language, "code": self.code});
        assert_eq!(client.call("execute_code", &call).fine(), self.expected);
    }

    fn run_bare(&self) {
        let (program, arguments) = self.bare.split_first().expect("a program");
        let output = Command::new(program).args(arguments).output().expect("it runs");
        assert!(output.status.success());
    }
}

impl Bench {
    pub(crate) fn languages(&mut self) {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let python = real_python("python3");
        let python = Case {
            language: "python",
            code: "1+1",
            expected: "2",
            bare: vec![python.display().to_string(), "-c".to_owned(), "print(1+1)".to_owned()],
        };
        let bash = Case {
            language: "bash",
            code: "echo $((1+1))",
            expected: "2",
            bare: words(&["bash", "-c", "echo $((1+1))"]),
        };
        let node = Case {
            language: "node",
            code: "1+1",
            expected: "2",
            bare: words(&["node", "-e", "console.log(1+1)"]),
        };
        let mut client = Client::start(&json!({}));
        let none = Duration::ZERO;
        self.compare_with_bare("Python `1+1`, fresh guest", Some(4.0), &mut client, &python, none);
        self.compare_with_bare("Bash `1+1`, fresh guest", Some(5.0), &mut client, &bash, none);
        self.compare_with_bare("Node.js `1+1`, soon after another", None, &mut client, &node, SOON);
        self.cold("Python `1+1`, first of a new server", &python);
        self.cold("Node.js `1+1`, first of a new server", &node);
        self.pandas();
        self.rate("Python executions per second, 8 at a time", Some(250.0), &mut client, &python);
        self.rate("Bash executions per second, 8 at a time", None, &mut client, &bash);
        self.deadlines(&mut client);
        self.bombs(&mut client);
    }

    /// Measures codexec and the bare program, alternating, so that other load affects both.
    fn compare_with_bare(
        &mut self,
        what: &'static str,
        aim: Option<f64>,
        client: &mut Client,
        case: &Case,
        pause: Duration,
    ) {
        // The pause lets the next worker warm up, which is part of the measured case.
        let rounds = if pause.is_zero() { self.rounds } else { self.rounds.min(20) };
        for _ in 0..rounds.min(8) {
            case.run(client);
            std::thread::sleep(pause);
        }
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.extend(sample(1, || case.run(client)));
            bare.extend(sample(1, || case.run_bare()));
            std::thread::sleep(pause);
        }
        self.push_comparison(what, aim, ours, bare, &case.bare);
    }

    fn cold(&mut self, what: &'static str, case: &Case) {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds.min(10) {
            ours.extend(sample(1, || case.run(&mut Client::start(&json!({})))));
            bare.extend(sample(1, || case.run_bare()));
        }
        self.push_comparison(what, None, ours, bare, &case.bare);
    }

    fn pandas(&mut self) {
        let Some(world) = std::env::var_os("CODEXEC_WORLD").map(PathBuf::from) else { return };
        let venv = world.join("venv");
        let bare = format!("{}", venv.join("bin/python").display());
        let case = Case {
            language: "python",
            code: GROUPED,
            expected: "{1: 3, 2: 3}",
            bare: vec![bare, "-c".to_owned(), GROUPED.to_owned()],
        };
        let mut client = Client::with(&json!({}), |command| {
            let home = command.get_current_dir().expect("set").to_owned();
            keep_settings(&home, &format!("[python]\nvenv = {venv:?}\npreload = [\"pandas\"]\n"));
        });
        let rounds = self.rounds;
        self.rounds = rounds.min(20);
        let what = "Python with pandas loaded, a small groupby";
        self.compare_with_bare(what, None, &mut client, &case, Duration::ZERO);
        self.rounds = rounds;
    }

    fn rate(&mut self, what: &'static str, aim: Option<f64>, client: &mut Client, case: &Case) {
        let call = json!({"language": case.language, "code": case.code});
        let rate = crate::rate(client, self.rounds * 5, &call);
        self.push_row(what, rate, "/s", aim, String::new());
    }

    /// Measures how long the reply takes under a limit of one second.
    fn deadlines(&mut self, client: &mut Client) {
        for (what, language, code) in [
            ("TypeScript: answer after a limit of 1 s", "typescript", "for (;;) {}"),
            ("Python: the same, `sleep 30`", "python", "import time\ntime.sleep(30)"),
            ("Bash: the same, `sleep 30`", "bash", "sleep 30"),
            (
                "Node.js: the same, `sleep 30`",
                "node",
                "await new Promise((done) => setTimeout(done, 30_000))",
            ),
        ] {
            let call = json!({"language": language, "code": code, "timeout_ms": 1000});
            let mut times = sample(self.rounds.min(5), || {
                let said = client.call("execute_code", &call).failed();
                assert_eq!(said.split(':').next(), Some("TIMEOUT"), "{said}");
            });
            times.sort();
            self.push_times(what, &times, None, String::new());
        }
    }

    /// Measures `ping` while a guest exhausts a resource.
    fn bombs(&mut self, client: &mut Client) {
        let flood = "while :; do cat /dev/zero; done | tr '\\0' 'y'";
        for (what, language, code) in [
            ("`ping` while a fork bomb runs, p99", "bash", ":(){ :|:& };: ; sleep 30"),
            (
                "`ping` while a memory bomb runs, p99",
                "python",
                "all = []\nwhile True: all.append(bytearray(1 << 24))",
            ),
            ("`ping` while a disk is filled, p99", "bash", "cat /dev/zero > full; sleep 30"),
            ("`ping` while output is flooded, p99", "bash", flood),
        ] {
            let call = json!({"language": language, "code": code, "timeout_ms": 2000});
            let mut pings = Vec::new();
            let begun = Instant::now();
            // Some end at once, so each is repeated for the same number of seconds.
            while pings.len() < 2 || (self.rounds > 10 && begun.elapsed() < Duration::from_secs(4))
            {
                let id = client.send_call("execute_code", &call);
                while !has_answer(client, id) {
                    pings.push(client.ping());
                    // Pings like a real client: without the pause, pings would starve the guests.
                    std::thread::sleep(Duration::from_millis(5));
                }
                let _ = client.wait_call(id);
            }
            pings.sort();
            let worst = ms(percentile(&pings, 99));
            let note =
                format!("median {:.2} ms, {} pings", ms(percentile(&pings, 50)), pings.len());
            self.push_row(what, worst, "ms", Some(50.0), note);
        }
    }

    /// Adds a row with the bare program's time in the note.
    fn push_comparison(
        &mut self,
        what: &'static str,
        aim: Option<f64>,
        mut ours: Vec<Duration>,
        mut bare: Vec<Duration>,
        program: &[String],
    ) {
        ours.sort();
        bare.sort();
        let (half, theirs) = (ms(percentile(&ours, 50)), ms(percentile(&bare, 50)));
        let p95 = ms(percentile(&bare, 95));
        let name = program.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(" ");
        let name = name.rsplit('/').next().unwrap_or_default();
        let note = format!(
            "compared with `{name}`: {theirs:.2} ms (p95 {p95:.2}), ratio {:.2}",
            half / theirs
        );
        self.push_times(what, &ours, aim, note);
    }
}

/// Returns true if the reply arrived while waiting for pings.
fn has_answer(client: &Client, id: u64) -> bool {
    client.others.iter().any(|message: &Value| message["id"] == id)
}

/// Returns the real interpreter instead of a version manager's shell script, as codexec does.
fn real_python(name: &str) -> PathBuf {
    let mut command = Command::new(name);
    let output = command.args(["-c", "import sys; print(sys.executable)"]).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    said.ok().filter(|path| Path::new(path).is_file()).unwrap_or_else(|| name.to_owned()).into()
}
