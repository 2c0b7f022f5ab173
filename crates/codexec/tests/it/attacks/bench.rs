//! One server with everything around it that a case may attack.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::bait::{Listener, Victim};
use super::host::{
    AFTERMATH, Guests, Sandbox, files, free_memory_kib, memory_kib, mounts, open_files, reset_peak,
    secret, within,
};
use super::recorder::Recorders;
use crate::support::{Client, PATIENCE};

/// How many workers wait when nothing goes on.
const WARM: usize = 2;
/// A rush opens more slots, which stay a while; never more than this with what we do.
const MAX: usize = 4;
/// Where nothing has changed for this long, nothing is under way.
const CALM: Duration = Duration::from_millis(40);
/// A variable of the server's own.
const SECRET_NAME: &str = "CODEXEC_IT_SECRET";

pub(crate) struct Bench {
    pub(crate) client: Client,
    pub(crate) recorders: Recorders,
    pub(crate) listener: Listener,
    victim: Victim,
    canary: PathBuf,
    pub(crate) outdir: PathBuf,
    /// Where the server may put temporary files.
    tmp: PathBuf,
    /// The canary's content, and the value of the server's variable.
    secrets: [String; 2],
    /// The ids of the executions that took place.
    executions: BTreeSet<String>,
    /// Whether programs have run.
    is_warm: bool,
    /// Everything that was answered.
    pub(crate) said: Vec<String>,
    /// Keeps the files of this bench.
    _folder: TempDir,
}

/// What there was before a case.
pub(crate) struct Before {
    pub(crate) sandbox: Sandbox,
    pub(crate) guests: Guests,
    executions: usize,
    pub(crate) connections: usize,
    pub(crate) datagrams: usize,
    outdir: BTreeSet<(PathBuf, u64)>,
    state: BTreeSet<PathBuf>,
    pub(crate) rss_kib: u64,
    pub(crate) open_files: usize,
    pub(crate) free_kib: u64,
    log_bytes: u64,
}

/// How a call ended, in the words of the oracles.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: &'static str,
    pub(crate) text: String,
    pub(crate) whole: String,
    /// The id of the execution, if there was one.
    pub(crate) execution: Option<String>,
}

impl Bench {
    /// Starts a server with these upstreams and settings.
    pub(crate) fn start(upstreams: &[(&str, Value)], settings: &str) -> Bench {
        Bench::with_toolset(upstreams, settings, "compact")
    }

    pub(crate) fn with_toolset(
        upstreams: &[(&str, Value)],
        settings: &str,
        toolset: &str,
    ) -> Bench {
        let folder = tempfile::tempdir().expect("a directory");
        let recorders = Recorders::new(folder.path());
        let place = |name: &str| folder.path().join(name);
        let (canary, outdir, tmp) = (place("canary"), place("out"), place("tmp"));
        let secrets = [secret(), secret()];
        std::fs::write(&canary, &secrets[0]).expect("written");
        std::fs::create_dir(&outdir).expect("made");
        std::fs::create_dir(&tmp).expect("made");
        std::fs::write(outdir.join("sentinel"), "untouched").expect("written");
        let entry =
            |(name, plan): &(&str, Value)| ((*name).to_owned(), recorders.entry(name, plan));
        let servers = Value::Object(upstreams.iter().map(entry).collect());
        let settings = settings.replace("@@OUTDIR@@", &outdir.display().to_string());
        let settings = format!("[workers]\nwarm = {WARM}\nmax = {MAX}\n{settings}");
        let client = Client::with(&servers, |command| {
            configure(command, &settings);
            surround(command, &canary, &secrets[1], &tmp);
            command.env("CODEXEC_TOOLSET", toolset);
        });
        let listener = Listener::new(&outdir);
        Bench {
            client,
            recorders,
            listener,
            victim: Victim::new(),
            canary,
            outdir,
            tmp,
            secrets,
            executions: BTreeSet::new(),
            is_warm: false,
            said: Vec::new(),
            _folder: folder,
        }
    }

    /// Ends the server, and starts it again with all that it has kept.
    pub(crate) fn restart(&mut self) {
        let (canary, secret, tmp) = (&self.canary, &self.secrets[1], &self.tmp);
        self.client.restart(|command| surround(command, canary, secret, tmp));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.client.child.id()
    }

    pub(crate) fn names(&self, id: &str) -> Vec<(&'static str, String)> {
        vec![
            ("ID", id.to_owned()),
            ("CANARY", self.canary.display().to_string()),
            ("OUTDIR", self.outdir.display().to_string()),
            ("SCRATCH", self.recorders.folder().display().to_string()),
            ("PORT", self.listener.port.to_string()),
            ("UDP", self.listener.udp.to_string()),
            ("SOCK", self.listener.path.display().to_string()),
            ("ABS", self.listener.name.clone()),
            ("VICTIM", self.victim.pid().to_string()),
            ("WORKDIR", "/box/work".to_owned()),
            ("INODE_QUOTA", "1".to_owned()),
            ("STATE", self.state().display().to_string()),
            ("HOME", self.client.home.path().display().to_string()),
            ("SERVER", self.pid().to_string()),
            ("SECRET_NAME", SECRET_NAME.to_owned()),
            ("HOSTFN", "callTool".to_owned()),
            ("EXEC_TOOL", "execute_code".to_owned()),
        ]
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.client.home.path().join("state")
    }

    /// Sends code; `opts` are further arguments.
    pub(crate) fn send(&mut self, language: &str, code: &str, opts: &Value) -> u64 {
        let mut arguments = json!({"code": code, "language": language});
        let opts = opts.as_object().into_iter().flatten();
        // That one is for the harness.
        for (key, value) in opts.filter(|(key, _)| *key != "config") {
            arguments[key] = value.clone();
        }
        self.client.send_call("execute_code", &arguments)
    }

    /// Whether the answer comes this soon.
    pub(crate) fn is_answered(&mut self, id: u64, patience: Duration) -> bool {
        within(patience, || {
            // Whatever comes before its answer is kept.
            self.client.ping();
            self.client.others.iter().any(|message| message["id"] == id)
        })
    }

    pub(crate) fn answered(&mut self, id: u64) -> Answered {
        let reply = self.client.wait(id);
        let answered = answered(&reply);
        self.executions.extend(answered.execution.clone());
        self.said.push(answered.whole.clone());
        answered
    }

    pub(crate) fn run(&mut self, code: &str, opts: &Value) -> Answered {
        let id = self.send("javascript", code, opts);
        self.answered(id)
    }

    /// Waits until the pool is full, and looks around.
    pub(crate) fn before(&mut self) -> Before {
        let pid = self.pid();
        let is_full = within(PATIENCE, || {
            let sandbox = Sandbox::of(pid);
            sandbox.workers.len() >= WARM && sandbox.workers.len() == sandbox.keepers.len()
        });
        assert!(is_full, "the pool does not fill up: {:?}", Sandbox::of(pid));
        reset_peak(pid);
        self.said.clear();
        Before {
            sandbox: Sandbox::of(pid),
            guests: self.settled(CALM),
            executions: self.executions.len(),
            connections: self.listener.connections(),
            datagrams: self.listener.datagrams(),
            outdir: files(&self.outdir),
            state: self.state_files(),
            rss_kib: memory_kib(pid, "VmRSS"),
            open_files: open_files(pid),
            free_kib: free_memory_kib(),
            log_bytes: self.log_bytes(),
        }
    }

    /// What is still there of a guest that ran in one of these workers: a worker serves once, so
    /// one of them must be gone, and the others must be all there is.
    pub(crate) fn left_behind(&self, workers: &BTreeSet<u32>) -> Option<String> {
        let is_clean = || {
            let now = Sandbox::of(self.pid());
            now.strays.is_empty()
                && now.keepers.len() <= MAX
                && now.workers.len() <= now.keepers.len()
                && workers.difference(&now.workers).next().is_some()
        };
        let is_clean = within(AFTERMATH, is_clean);
        (!is_clean).then(|| format!("left behind: {:?} of {workers:?}", Sandbox::of(self.pid())))
    }

    /// Uses the languages of programs once, so that a worker of each waits from then on.
    pub(crate) fn warm_up(&mut self) {
        if self.is_warm {
            return;
        }
        self.is_warm = true;
        for (language, code) in [("python", "1"), ("bash", "true"), ("node", "1")] {
            let id = self.send(language, code, &Value::Null);
            let answered = self.answered(id);
            assert_eq!(answered.status, "ok", "{}", answered.text);
        }
        self.settled(Duration::from_millis(300));
    }

    /// The guests' processes, once nothing has changed among them for so long.
    fn settled(&self, calm: Duration) -> Guests {
        let mut guests = Guests::of(self.pid());
        while within(calm, || Guests::of(self.pid()) != guests) {
            guests = Guests::of(self.pid());
        }
        guests
    }

    /// What is still there of programs: more of them than before, or no worker that has gone. All
    /// processes of a worker die with its first one. A program's slot may be a new one, so there
    /// may be one worker more.
    pub(crate) fn left_of_programs(&self, before: &Before) -> Option<String> {
        let before = &before.guests;
        let problem = || {
            let now = Guests::of(self.pid());
            let is_grown = now.firsts.len() > before.firsts.len() + 1
                || now.others.len() > before.others.len() + 1;
            // A language that nobody has used has no worker that could go.
            let is_clean = !is_grown && now.firsts != before.firsts;
            (!is_clean).then(|| format!("left behind: {now:?} after {before:?}"))
        };
        within(AFTERMATH, || problem().is_none());
        problem()
    }

    pub(crate) fn has_run_since(&self, before: &Before) -> bool {
        self.executions.len() > before.executions
    }

    /// What must hold after every case, and does not.
    pub(crate) fn broken_promises(&mut self, before: &Before) -> Vec<String> {
        let mut broken = Vec::new();
        let mut must = |holds: bool, what: &str| {
            if !holds {
                broken.push(what.to_owned());
            }
        };
        let is_alive = self.client.child.try_wait().expect("our child").is_none();
        must(is_alive, "the server has ended");
        if is_alive {
            self.client.ping();
        }
        let canary = std::fs::read_to_string(&self.canary).unwrap_or_default();
        must(canary == self.secrets[0], "the canary was changed");
        must(files(&self.outdir) == before.outdir, "something was written outside");
        must(self.victim.lives(), "a process of the host was killed");
        must(mounts().is_empty(), "a mount is seen on the host");
        must(files(&self.tmp).is_empty(), "a temporary file was left");
        let said = format!("{:?}{:?}{}", self.said, self.client.others, self.client.stderr());
        must(!self.secrets.iter().any(|secret| said.contains(secret)), "a secret was said");
        broken
    }

    /// What must hold of a server at the end: one finished record for each execution, and no
    /// secret in any file of the state.
    pub(crate) fn broken_records(&mut self) -> Vec<String> {
        let mut broken = Vec::new();
        let rows = rows(&self.state(), "select id, status from executions");
        let recorded: BTreeSet<String> =
            rows.iter().map(|row| row[0].as_str().unwrap_or_default().to_owned()).collect();
        if recorded != self.executions || rows.len() != self.executions.len() {
            broken.push("not one record for each execution".to_owned());
        }
        if rows.iter().any(|row| row[1] == "running") {
            broken.push("a record was not finished".to_owned());
        }
        for (path, _) in files(self.client.home.path()) {
            let content = std::fs::read(&path).unwrap_or_default();
            let holds = |secret: &String| content.windows(32).any(|w| w == secret.as_bytes());
            if self.secrets.iter().any(holds) {
                broken.push(format!("a secret is in {}", path.display()));
            }
        }
        broken
    }

    pub(crate) fn has_new_state(&self, before: &Before) -> bool {
        self.state_files() != before.state
    }

    pub(crate) fn log_growth(&self, before: &Before) -> u64 {
        self.log_bytes().saturating_sub(before.log_bytes)
    }

    /// How many files the server has kept since then, and how many MiB are in them.
    pub(crate) fn count_new_files(&self, before: &Before) -> (usize, u64) {
        let files = files(self.client.home.path());
        let new = files.iter().filter(|(path, _)| !before.state.contains(path));
        (new.clone().count(), new.map(|(_, bytes)| bytes).sum::<u64>() >> 20)
    }

    /// The code of an execution as it was written down.
    pub(crate) fn recorded_code(&self, execution: &str) -> Value {
        let sql = format!("select code from executions where id = '{execution}'");
        rows(&self.state(), &sql).first().map_or(Value::Null, |row| row[0].clone())
    }

    /// All files but those that the server makes in its own time: records, and what its waiting
    /// workers need.
    fn state_files(&self) -> BTreeSet<PathBuf> {
        let own = ["logs", "owners", "packages"].map(|name| self.state().join(name));
        let is_own = |path: &Path| {
            own.iter().any(|folder| path.starts_with(folder))
                || path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("codexec.db"))
        };
        let files = files(self.client.home.path()).into_iter().map(|(path, _)| path);
        files.filter(|path| !is_own(path)).collect()
    }

    /// Standard error, and whatever else is written that is not the database.
    fn log_bytes(&self) -> u64 {
        let is_log = |path: &Path| {
            !path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("codexec.db"))
        };
        let files = files(self.client.home.path());
        files.iter().filter(|(path, _)| is_log(path)).map(|(_, bytes)| bytes).sum()
    }
}

/// What there is around a server that a case may want.
fn surround(command: &mut Command, canary: &Path, secret: &str, tmp: &Path) {
    command.env("CANARY", canary).env(SECRET_NAME, secret).env("TMPDIR", tmp);
}

/// Writes the settings where this command will look for them.
pub(crate) fn configure(command: &mut Command, settings: &str) {
    let home = command.get_envs().find(|(key, _)| *key == "CODEXEC_HOME");
    let home = PathBuf::from(home.and_then(|(_, value)| value).expect("a home"));
    std::fs::create_dir_all(&home).expect("made");
    std::fs::write(home.join("config.toml"), settings).expect("written");
}

pub(crate) fn answered(reply: &Value) -> Answered {
    let result = &reply["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let execution = &result["_meta"]["codexec/execution"]["id"];
    // The toolset `codexec` says everything in its text.
    let flat: Value = serde_json::from_str(&text).unwrap_or_default();
    let execution = execution.as_str().or_else(|| flat["execution_id"].as_str());
    let execution = execution.map(ToOwned::to_owned);
    let mut answered = Answered { status: "ok", text, whole: reply.to_string(), execution };
    if reply.get("error").is_some() {
        answered.status = "bad_request";
    } else if result["isError"] == true {
        let code = flat["error_code"].as_str();
        let first = || answered.first_line().split(':').next().unwrap_or_default();
        answered.status = status_of(code.unwrap_or_else(first));
    }
    answered
}

fn status_of(code: &str) -> &'static str {
    match code {
        "TIMEOUT" => "timeout",
        "MEMORY_LIMIT" => "oom",
        "OUTPUT_LIMIT" | "CPU_LIMIT" | "DISK_LIMIT" | "MAX_TOOL_CALLS_EXCEEDED" => "limit",
        "SERVER_NOT_ALLOWED" | "TOOL_NOT_ALLOWED" | "TOOL_QUARANTINED" => "denied",
        "WORKING_DIR_NOT_ALLOWED" => "denied",
        code if code.starts_with("INVALID_") => "bad_request",
        "SCRIPT_NAME_TAKEN" => "bad_request",
        code if code.ends_with("_NOT_FOUND") && code != "TOOL_NOT_FOUND" => "not_found",
        _ => "fail",
    }
}

impl Answered {
    /// Where much was printed, what says that it was cut stands before it.
    pub(crate) fn first_line(&self) -> &str {
        let cut = self.text.strip_prefix("[cut: ").and_then(|cut| cut.split_once('\n'));
        let text = cut.map_or(self.text.as_str(), |(_, text)| text);
        text.lines().next().unwrap_or_default()
    }
}

/// The rows of the server's database, read beside it.
pub(crate) fn rows(state: &Path, sql: &str) -> Vec<Value> {
    let program = "import json, sqlite3, sys\n\
         base = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True, timeout=30)\n\
         print(json.dumps(base.execute(sys.argv[2]).fetchall()))";
    let mut python = Command::new("python3");
    let output = python
        .args(["-c", program])
        .arg(state.join("codexec.db"))
        .arg(sql)
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("rows");
    rows.as_array().expect("rows").clone()
}
