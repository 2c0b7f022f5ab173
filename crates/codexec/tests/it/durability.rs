//! Servers that are killed at any moment: what was acknowledged is there, and nothing is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::attacks::host::within;
use crate::support::{Client, PATIENCE, command, need};

/// At once, in one home.
const SERVERS: usize = 4;

const ROUNDS: usize = 50;

/// How many requests each server gets at once.
const LOAD: usize = 16;

#[test]
fn servers_that_are_killed_200_times_lose_nothing_that_was_acknowledged() {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join("servers.json"), r#"{"mcpServers":{}}"#).expect("written");
    let random = RandomState::new();
    let kills = std::thread::scope(|scope| {
        let servers: Vec<_> = (0..SERVERS)
            .map(|server| {
                let (random, home) = (&random, &home);
                scope.spawn(move || {
                    let mut acknowledged = BTreeSet::new();
                    for round in 0..ROUNDS {
                        let chance = random.hash_one((server, round));
                        let name = format!("{server}-{round}");
                        // Some of them while they still take over what the last one left.
                        let is_warm = round % 4 != 0;
                        kill_under_load(home, &name, is_warm, chance, &mut acknowledged);
                    }
                    acknowledged
                })
            })
            .collect();
        servers.into_iter().map(|server| server.join().expect("no panic")).collect::<Vec<_>>()
    });
    let acknowledged: BTreeSet<String> = kills.into_iter().flatten().collect();
    assert!(!acknowledged.is_empty(), "some were acknowledged under load");

    let state = home.path().join("state");
    let ended =
        command(home.path()).args(["exec", "-l", "ts", "'last'"]).output().expect("codexec starts");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let rows = rows(&state.join("codexec.db"));
    let logged = logged(&state.join("logs"));
    assert_eq!(rows.keys().collect::<Vec<_>>(), logged.keys().collect::<Vec<_>>());
    let mut found = BTreeSet::new();
    for (id, entry) in &logged {
        assert_eq!(rows[id], entry["status"], "{entry}");
        if entry["status"] == "success" {
            found.insert(entry["value"].as_str().unwrap_or_default().to_owned());
        }
    }
    let lost: Vec<&String> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let of = |status: &str| rows.values().filter(|found| *found == status).count();
    assert_eq!(of("running"), 0);
    assert!(of("interrupted") > 0, "some were running when their server was killed");
}

/// The state is on a small disk of its own, in a mount namespace of its own: that works for root and
/// for everybody.
#[test]
fn a_full_disk_refuses_runs_until_there_is_room() {
    if !need("namespaces of users", has_user_namespaces()) {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join("servers.json"), r#"{"mcpServers":{}}"#).expect("written");
    std::fs::create_dir(home.path().join("state")).expect("made");
    let mut client = Client::sharing(home.path(), |command| {
        // Whoever mounts is root there; a server that is root wants to become somebody else.
        let mounted = r#"mount -t tmpfs -o size=40m,mode=700 tmpfs "$CODEXEC_HOME" &&
            exec unshare --map-user=65534 --map-group=65534 "$@""#;
        let mut on_small_disk = Command::new("unshare");
        on_small_disk.args(["-rm", "sh", "-c", mounted, "sh"]).arg(command.get_program());
        on_small_disk.args(command.get_args()).current_dir(home.path());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => on_small_disk.env(name, value),
                None => on_small_disk.env_remove(name),
            };
        }
        *command = on_small_disk;
    });
    client.shake_hands();
    client.run("'0'").fine();
    let state = Path::new("/proc").join(client.child.id().to_string());
    let state =
        state.join("root").join(home.path().strip_prefix("/").expect("whole")).join("state");
    let ballast = state.join("ballast");
    std::fs::write(&ballast, vec![0; 16 << 20]).expect("there is room");
    let mut ran = 1;
    let refused = loop {
        let said = client.run(&format!("console.log('x'.repeat(700_000)); '{ran}'"));
        if said.is_error {
            break said.text;
        }
        ran += 1;
        assert!(ran < 200, "a disk of 40 MiB is full by now");
    };
    assert!(refused.starts_with("STORE_UNAVAILABLE: "), "{refused}");
    assert!(refused.contains("the disk is full: "), "{refused}");
    client.run("'still full'").failed();

    std::fs::remove_file(&ballast).expect("it was there");
    client.run("'room again'").fine();
    // The disk goes with the server, so the log is looked at before.
    let logs = state.join("logs");
    let text = || std::fs::read_to_string(log_of_today(&logs)).unwrap_or_default();
    // The log files follow the answers a moment later.
    assert!(within(PATIENCE, || text().contains("room again")), "{}", text());
    let logged = logged(&logs);
    assert_eq!(logged.len(), ran + 1, "all that ran, and nothing that was refused");
    assert!(logged.values().all(|entry| entry["status"] == "success"));
}

fn log_of_today(logs: &Path) -> PathBuf {
    let files = std::fs::read_dir(logs).expect("a folder").flatten();
    let mut files = files.map(|file| file.path());
    files.find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap_or_default()
}

fn has_user_namespaces() -> bool {
    let tried = Command::new("unshare").args(["-rm", "true"]).status();
    tried.is_ok_and(|status| status.success())
}

/// Starts a server in this home, gives it work, and kills it.
fn kill_under_load(
    home: &TempDir,
    name: &str,
    is_warm: bool,
    chance: u64,
    acknowledged: &mut BTreeSet<String>,
) {
    let mut client = Client::sharing(home.path(), |_| {});
    client.shake_hands();
    let mut one_takes = Duration::from_millis(10);
    if is_warm {
        client.run("0").fine();
        let begun = Instant::now();
        client.run("0").fine();
        one_takes = begun.elapsed();
    }
    let mut asked = BTreeMap::new();
    for n in 0..LOAD {
        let mark = format!("{name}-{n}");
        let code = format!("console.log('x'.repeat({})); '{mark}'", n * 3_000);
        asked.insert(client.send_call("execute_code", &json!({"code": code})), mark);
    }
    // At any moment of the time that all of it may take on this machine, if that is not too long.
    let within_us = one_takes.as_micros() as u64 * LOAD as u64;
    let moment = Instant::now() + Duration::from_micros(chance % within_us.clamp(1, 300_000));
    let mut answers = Vec::new();
    while let Some(answer) = client.message_until(moment) {
        answers.push(answer);
    }
    client.child.kill().expect("our child");
    client.child.wait().expect("our child");
    // What it said before it died counts, too.
    while let Some(answer) = client.message_until(Instant::now() + Duration::from_secs(60)) {
        answers.push(answer);
    }
    for answer in answers {
        let Some(mark) = answer["id"].as_u64().and_then(|id| asked.get(&id)) else { continue };
        assert!(answer["result"]["isError"].as_bool() != Some(true), "{answer}");
        acknowledged.insert(mark.clone());
    }
}

/// The status of every execution, by the words that people search by.
fn rows(database: &Path) -> BTreeMap<String, String> {
    let conn = rusqlite::Connection::open(database).expect("opened");
    let check: String =
        conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
    assert_eq!(check, "ok");
    let mut rows = conn.prepare("SELECT id, kind FROM executions").expect("known columns");
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

/// Every entry of every file, each once.
fn logged(folder: &Path) -> BTreeMap<String, Value> {
    let mut entries = BTreeMap::new();
    for file in std::fs::read_dir(folder).expect("a folder").flatten() {
        if file.path().extension().is_none_or(|ending| ending != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(file.path()).expect("UTF-8");
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            let entry: Value = serde_json::from_str(line).expect("every line is JSON");
            let id = entry["execution_id"].as_str().expect("an id").to_owned();
            assert!(entries.insert(id, entry).is_none(), "twice: {line}");
        }
    }
    entries
}
