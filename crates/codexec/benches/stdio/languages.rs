//! Python, Bash and Node.js, each beside the plain program on the same machine in the same run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, keep_settings};
use crate::{Bench, ms, percentile, sampled};

const GROUPED: &str = "import pandas as pd
table = pd.DataFrame({'a': [1, 1, 2], 'b': [1, 2, 3]})
str(table.groupby('a')['b'].sum().to_dict())";
/// Between two executions of Node.js, so that the next worker is there.
const SOON: Duration = Duration::from_millis(300);

/// A small program in a language, and the plain way to run it.
struct Case {
    language: &'static str,
    code: &'static str,
    gives: &'static str,
    plain: Vec<String>,
}

impl Case {
    fn run(&self, client: &mut Client) {
        let call = json!({"language": self.language, "code": self.code});
        assert_eq!(client.call("execute_code", &call).fine(), self.gives);
    }

    fn run_plain(&self) {
        let (program, arguments) = self.plain.split_first().expect("a program");
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
            gives: "2",
            plain: vec![python.display().to_string(), "-c".to_owned(), "print(1+1)".to_owned()],
        };
        let bash = Case {
            language: "bash",
            code: "echo $((1+1))",
            gives: "2",
            plain: words(&["bash", "-c", "echo $((1+1))"]),
        };
        let node = Case {
            language: "node",
            code: "1+1",
            gives: "2",
            plain: words(&["node", "-e", "console.log(1+1)"]),
        };
        let mut client = Client::start(&json!({}));
        let none = Duration::ZERO;
        self.beside("Python `1+1`, fresh guest", Some(4.0), &mut client, &python, none);
        self.beside("Bash `1+1`, fresh guest", Some(5.0), &mut client, &bash, none);
        self.beside("Node.js `1+1`, soon after another", None, &mut client, &node, SOON);
        self.cold("Python `1+1`, first of a new server", &python);
        self.cold("Node.js `1+1`, first of a new server", &node);
        self.pandas();
        self.rate("Python executions per second, 8 at a time", Some(250.0), &mut client, &python);
        self.rate("Bash executions per second, 8 at a time", None, &mut client, &bash);
        self.deadlines(&mut client);
        self.bombs(&mut client);
    }

    /// Ours and the plain one in turn, so that the machine is the same for both.
    fn beside(
        &mut self,
        what: &'static str,
        aim: Option<f64>,
        client: &mut Client,
        case: &Case,
        pause: Duration,
    ) {
        // The pause is part of what is measured: a guest that has had the time to warm up.
        let rounds = if pause.is_zero() { self.rounds } else { self.rounds.min(20) };
        for _ in 0..rounds.min(8) {
            case.run(client);
            std::thread::sleep(pause);
        }
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.extend(sampled(1, || case.run(client)));
            plain.extend(sampled(1, || case.run_plain()));
            std::thread::sleep(pause);
        }
        self.pair(what, aim, ours, plain, &case.plain);
    }

    fn cold(&mut self, what: &'static str, case: &Case) {
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds.min(10) {
            ours.extend(sampled(1, || case.run(&mut Client::start(&json!({})))));
            plain.extend(sampled(1, || case.run_plain()));
        }
        self.pair(what, None, ours, plain, &case.plain);
    }

    fn pandas(&mut self) {
        let Some(world) = std::env::var_os("CODEXEC_WORLD").map(PathBuf::from) else { return };
        let venv = world.join("venv");
        let plain = format!("{}", venv.join("bin/python").display());
        let case = Case {
            language: "python",
            code: GROUPED,
            gives: "{1: 3, 2: 3}",
            plain: vec![plain, "-c".to_owned(), GROUPED.to_owned()],
        };
        let mut client = Client::with(&json!({}), |command| {
            let home = command.get_current_dir().expect("set").to_owned();
            keep_settings(&home, &format!("[python]\nvenv = {venv:?}\npreload = [\"pandas\"]\n"));
        });
        let rounds = self.rounds;
        self.rounds = rounds.min(20);
        let what = "Python with pandas loaded, a small groupby";
        self.beside(what, None, &mut client, &case, Duration::ZERO);
        self.rounds = rounds;
    }

    fn rate(&mut self, what: &'static str, aim: Option<f64>, client: &mut Client, case: &Case) {
        let call = json!({"language": case.language, "code": case.code});
        let rate = crate::rate(client, self.rounds * 5, &call);
        self.row(what, rate, "/s", aim, String::new());
    }

    /// How long after a limit of one second the answer is there.
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
            let mut times = sampled(self.rounds.min(5), || {
                let said = client.call("execute_code", &call).failed();
                assert_eq!(said.split(':').next(), Some("TIMEOUT"), "{said}");
            });
            times.sort();
            self.timed(what, &times, None, String::new());
        }
    }

    /// How long a ping takes while guests do their worst.
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
            // Some end at once; the same number of seconds for each.
            while pings.len() < 2 || (self.rounds > 10 && begun.elapsed() < Duration::from_secs(4))
            {
                let id = client.send_call("execute_code", &call);
                while !has_answer(client, id) {
                    pings.push(client.ping());
                    // At a client's pace: two processes that do nothing else starve the guests.
                    std::thread::sleep(Duration::from_millis(5));
                }
                let _ = client.wait_call(id);
            }
            pings.sort();
            let worst = ms(percentile(&pings, 99));
            let note =
                format!("median {:.2} ms, {} pings", ms(percentile(&pings, 50)), pings.len());
            self.row(what, worst, "ms", Some(50.0), note);
        }
    }

    /// A row with what the plain way took beside it.
    fn pair(
        &mut self,
        what: &'static str,
        aim: Option<f64>,
        mut ours: Vec<Duration>,
        mut plain: Vec<Duration>,
        program: &[String],
    ) {
        ours.sort();
        plain.sort();
        let (half, theirs) = (ms(percentile(&ours, 50)), ms(percentile(&plain, 50)));
        let p95 = ms(percentile(&plain, 95));
        let name = program.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(" ");
        let name = name.rsplit('/').next().unwrap_or_default();
        let note =
            format!("beside `{name}`: {theirs:.2} ms (p95 {p95:.2}), ratio {:.2}", half / theirs);
        self.timed(what, &ours, aim, note);
    }
}

/// Whether an answer has come while pings were waited for.
fn has_answer(client: &Client, id: u64) -> bool {
    client.others.iter().any(|message: &Value| message["id"] == id)
}

/// Not the shell script of a version manager, but what it starts: codexec asks the same way.
fn real_python(name: &str) -> PathBuf {
    let mut command = Command::new(name);
    let output = command.args(["-c", "import sys; print(sys.executable)"]).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    said.ok().filter(|path| Path::new(path).is_file()).unwrap_or_else(|| name.to_owned()).into()
}
