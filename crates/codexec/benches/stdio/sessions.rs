//! A send to a session, compared with a bare interpreter that evaluates lines and keeps its
//! state, without sandbox, records and limits.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::Client;
use crate::{Bench, median, ms, sample};

const PYTHON: &str = "import sys\nfor line in sys.stdin: print(eval(line), flush=True)";
const NODE: &str = "require('readline').createInterface({input: process.stdin})\
                    .on('line', (line) => console.log((0, eval)(line)))";

/// An interpreter that evaluates one line at a time.
struct BareInterpreter {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl BareInterpreter {
    fn start(program: &str, arguments: &[&str]) -> BareInterpreter {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdin = child.stdin.take().expect("piped");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        BareInterpreter { child, stdin, lines }
    }

    fn send(&mut self, line: &str) -> Duration {
        let begun = Instant::now();
        writeln!(self.stdin, "{line}").expect("it reads");
        assert_eq!(self.lines.next().expect("it answers").expect("a line"), "2");
        begun.elapsed()
    }
}

impl Drop for BareInterpreter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bench {
    pub(crate) fn sessions(&mut self) {
        let bash = "while read -r line; do eval \"$line\"; done";
        for (what, language, code, program, arguments) in [
            ("session send, TypeScript", "typescript", "1+1", "node", ["-e", NODE]),
            ("session send, Python", "python", "1+1", "python3", ["-c", PYTHON]),
            ("session send, Node.js", "node", "1+1", "node", ["-e", NODE]),
            ("session send, Bash", "bash", "echo $((1+1))", "bash", ["-c", bash]),
        ] {
            let mut client = Client::start(&json!({}));
            let call = json!({"language": language, "code": code, "session": "bench"});
            let mut send = || assert_eq!(client.call("execute_code", &call).fine(), "2");
            let mut bare = BareInterpreter::start(program, &arguments);
            for _ in 0..10 {
                send();
                bare.send(code);
            }
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                ours.extend(sample(1, &mut send));
                theirs.push(bare.send(code));
            }
            ours.sort();
            theirs.sort();
            let alone = ms(median(&theirs));
            let note = format!(
                "compared with a bare `{program}`: {alone:.3} ms, ratio {:.1}",
                ms(median(&ours)) / alone
            );
            self.push_times(what, &ours, Some(0.5), note);
        }
    }
}
