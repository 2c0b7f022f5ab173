use codexec_types::Limits;

use super::*;

fn host() -> HostEnvironment {
    HostEnvironment {
        cores: 2,
        user_home: Some("/home/ann".into()),
        state_dir: "/home/ann/.codexec".into(),
        current_dir: None,
        variable: |name| (name == "TOKEN_OF_OURS").then(|| "t0p".to_owned()),
    }
}

fn config(text: &str) -> Result<Config, String> {
    let file: ConfigFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    Config::new(&file, &host()).map_err(|error| error.to_string())
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let config = config(text).expect("valid");
    let Limits { wall, memory_bytes, .. } = config.policy.limits;
    let (max, warm) = (config.max_workers, config.warm_workers);
    let actual =
        format!("{wall:?} {} MiB x{max} ~{warm} -{:?}", memory_bytes >> 20, config.lowered);
    assert_eq!(actual, expected);
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    assert_eq!(config(text).expect_err("refused"), expected);
}

#[test]
fn settings() {
    check("", "30s 512 MiB x16 ~4 -[]");
    check("[limits]\ntimeout-ms = 5\nmemory-mib = 64", "5ms 64 MiB x16 ~4 -[]");
    check("[workers]\nmax = 2", "30s 512 MiB x2 ~2 -[]");
    check("[sandbox]\nlowered = ['landlock']", "30s 512 MiB x16 ~4 -[Landlock]");
}

#[test]
fn invalid_settings_are_explained() {
    check_refused(
        "[sandbox]\nlowered = ['walls']",
        "`sandbox.lowered` names \"walls\"; the layers are user, pid, mount, network, ipc, uts, \
         cgroup-namespace, root, landlock, capabilities, no-new-privileges, rlimits, seccomp, cgroup",
    );
    check_refused(
        "colour = 1",
        "unknown field `colour`, expected one of `toolset`, `limits`, `languages`, `python`, `node`, `files`, \
         `environment`, `sandbox`, `workers`, `sessions`, `scripts`, `packages`, `tools`, `code`, \
         `gateway`, `discovery`, `logs`, `replies`, `http`, `otlp`, `code-executor`, \
         `code-execution-mode`, `mcpproxy`, `servers`",
    );
    check_refused("[tools]\nallowed = ['github']", "`tools.allowed`");
}

#[test]
fn log_retention_and_durability() {
    let logs = |text: &str| config(text).expect("valid").logs;
    let days = |days: u64| std::time::Duration::from_secs(days * 24 * 60 * 60);
    let default = logs("");
    assert_eq!(default.durability, codexec_store::Durability::Process);
    assert_eq!(default.retention, codexec_store::Retention::default());
    let kept = (default.retention.success, default.retention.failure, default.retention.session);
    assert_eq!(kept, (days(30), days(90), days(90)));
    let other = logs("[logs]\ndurability = 'power'\nsuccess-days = 1\nmax-mib = 16");
    assert_eq!(other.durability, codexec_store::Durability::Power);
    assert_eq!((other.retention.success, other.retention.max_bytes), (days(1), 16 << 20));
    check_refused(
        "[logs]\ndurability = 'hope'",
        "`logs.durability` is \"hope\"; write \"process\" or \"power\"",
    );
    check_refused(
        "[logs]\nsession-days = 0",
        "`logs.session-days = 0` is out of range; it must be 1 to 36500",
    );
}

#[test]
fn defaults_for_all_servers() {
    let settings = |text: &str| {
        let settings =
            codexec_gateway::GatewaySettings::new(Vec::new(), codexec_gateway::Warden::none());
        config(text).expect("valid").upstreams.apply_to(settings)
    };
    let shown = |text: &str| {
        let s = settings(text);
        format!(
            "{:?} {:?} {:?} {} {} {} {:?} {}",
            s.startup_timeout,
            s.call_timeout,
            s.call_total_timeout,
            s.calls_at_once,
            s.calls_in_all,
            s.queue,
            s.queue_wait,
            s.trust.name()
        )
    };
    assert_eq!(shown(""), "60s 60s 600s 100 400 200 30s auto");
    let all = "[gateway]\nstartup-timeout-ms = 1\ntimeout-ms = 2\nmax-total-timeout-ms = 3\n\
               max-concurrency = 4\nmax-total-concurrency = 5\nqueue = 6\nqueue-wait-ms = 7\n\
               trust = 'manual'";
    assert_eq!(shown(all), "1ms 2ms 3ms 4 5 6 7ms manual");
    check_refused(
        "[gateway]\ntrust = 'x'",
        "`gateway.trust` is \"x\"; write \"auto\", \"ask\" or \"manual\"",
    );
}

#[test]
fn without_settings_every_limit_is_the_default() {
    let policy = config("").expect("valid").policy;
    assert_eq!(policy.limits, Limits::DEFAULT);
    assert_eq!(policy.max_wall.as_secs(), 300);
}

/// Both ends of each range are accepted, one beyond either end is not.
#[test]
fn every_limit_has_a_floor_and_a_ceiling() {
    for (table, key, min, max) in [
        ("limits", "timeout-ms", 1, 300_000_u64),
        ("limits", "max-timeout-ms", 30_000, 86_400_000),
        ("limits", "cpu-s", 1, 86_400),
        ("limits", "grace-s", 0, 60),
        ("limits", "memory-mib", 32, 65_536),
        ("limits", "processes", 8, 4_096),
        ("limits", "open-files", 128, 65_536),
        ("limits", "disk-mib", 1, 16_384),
        ("limits", "disk-files", 64, 1_000_000),
        ("limits", "output-kib", 1, 65_536),
        ("limits", "tool-calls", 0, 100_000),
        ("files", "max-mib", 1, 65_536),
        ("files", "max-files", 64, 10_000_000),
        ("workers", "max", 1, 1_024),
        ("gateway", "startup-timeout-ms", 1, 3_600_000),
        ("gateway", "timeout-ms", 1, 600_000),
        ("gateway", "max-total-timeout-ms", 1, 86_400_000),
        ("gateway", "max-concurrency", 1, 1_000),
        ("gateway", "max-total-concurrency", 1, 10_000),
        ("gateway", "queue", 0, 10_000),
        ("gateway", "queue-wait-ms", 0, 3_600_000),
    ] {
        for value in [min, max] {
            config(&format!("[{table}]\n{key} = {value}")).expect(key);
        }
        let floor = if key == "max-timeout-ms" { 1 } else { min };
        for value in [floor.wrapping_sub(1), max + 1] {
            if value > max + 1 {
                continue;
            }
            check_refused(
                &format!("[{table}]\n{key} = {value}"),
                &format!("`{table}.{key} = {value}` is out of range; it must be {floor} to {max}"),
            );
        }
    }
}

#[test]
fn limits_are_set_independently() {
    let text = "[limits]\ntimeout-ms = 1\ncpu-s = 2\ngrace-s = 1\nmemory-mib = 33\nprocesses = 9\n\
                open-files = 140\ndisk-mib = 3\ndisk-files = 70\noutput-kib = 4\ntool-calls = 5";
    let limits = config(text).expect("valid").policy.limits;
    let expected = Limits {
        wall: std::time::Duration::from_millis(1),
        cpu: std::time::Duration::from_secs(2),
        grace: std::time::Duration::from_secs(1),
        memory_bytes: 33 << 20,
        processes: 9,
        open_files: 140,
        disk_bytes: 3 << 20,
        disk_files: 70,
        output_bytes: 4 << 10,
        tool_calls: 5,
    };
    assert_eq!(limits, expected);
}

#[test]
fn languages_are_enabled_by_name() {
    let enabled = |text: &str| config(text).expect("valid").policy.languages;
    assert_eq!(enabled(""), Language::ALL);
    let two = enabled("[languages]\nenabled = ['py', 'typescript', 'python']");
    assert_eq!(two, [Language::TypeScript, Language::Python]);
    let all = "typescript, javascript, python, bash, node";
    check_refused(
        "[languages]\nenabled = ['cobol']",
        &format!("`languages.enabled` names \"cobol\"; the languages are {all}"),
    );
    check_refused(
        "[languages]\nenabled = []",
        &format!("`languages.enabled` is empty; name at least one of {all}"),
    );
}

#[test]
fn interpreters_need_absolute_paths() {
    let default = config("").expect("valid").guests;
    assert_eq!((default.python.interpreter, default.python.venv, default.node), (None, None, None));
    assert_eq!(default.python.preload, ["numpy", "pandas"]);
    let named = config(
        "[python]\ninterpreter = '~/bin/python'\npreload = ['os.path', '_x1']\n\
         [node]\ninterpreter = '/opt/node'",
    );
    let named = named.expect("valid").guests;
    assert_eq!(named.python.interpreter, Some("/home/ann/bin/python".into()));
    assert_eq!(named.python.preload, ["os.path", "_x1"]);
    assert_eq!(named.node, Some("/opt/node".into()));
    assert_eq!(
        config("[python]\nvenv = '/srv/venv'\npreload = []").expect("valid").guests.python.venv,
        Some("/srv/venv".into())
    );
    check_refused(
        "[python]\ninterpreter = '/a'\nvenv = '/b'",
        "`python.interpreter` and `python.venv` are both set; keep one",
    );
    for (table, key) in [("python", "interpreter"), ("python", "venv"), ("node", "interpreter")] {
        check_refused(
            &format!("[{table}]\n{key} = 'bin/x'"),
            &format!(
                "`{table}.{key} = \"bin/x\"` is not an absolute path; start it with `/` or `~/`"
            ),
        );
    }
    for name in ["", "1x", "os.", ".os", "a b", "os;import x", "os..path"] {
        check_refused(
            &format!("[python]\npreload = ['json', '{name}']"),
            &format!(
                "`python.preload` names {name:?}; write modules like \"numpy\" or \"os.path\""
            ),
        );
    }
}

#[test]
fn environment_values_are_literal_or_references() {
    let config = config(
        "[environment]\nTZ = 'UTC'\nTOKEN = 'env:TOKEN_OF_OURS'\nMISSING = 'env:NOT_SET'\n_a1 = ''",
    );
    let environment = config.expect("valid").guests.environment;
    let pairs: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(pairs, [("TOKEN", "t0p"), ("TZ", "UTC"), ("_a1", "")]);
}

#[test]
fn dangerous_environment_names_are_refused() {
    let own = "codexec sets it itself";
    let loads = "it changes what every program loads";
    let python = "it changes how Python starts; use the settings of [python]";
    let written = "a name has letters, digits and `_`, and does not begin with a digit";
    for (name, why) in [
        ("PATH", own),
        ("HOME", own),
        ("LANG", own),
        ("TERM", own),
        ("LD_PRELOAD", loads),
        ("LD_LIBRARY_PATH", loads),
        ("PYTHONPATH", python),
        ("PYTHONSTARTUP", python),
        ("NODE_OPTIONS", "it changes what Node.js loads before the code"),
        ("BASH_ENV", "it makes bash run a file before the code"),
        ("1A", written),
        ("A-B", written),
        ("A=B", written),
        ("", written),
        ("Ä", written),
    ] {
        check_refused(
            &format!("[environment]\n'{name}' = 'x'"),
            &format!("`environment.{name}` cannot be given to code: {why}"),
        );
    }
    check_refused(
        "[environment]\nA = \"x\\u0000y\"",
        "`environment.A` cannot be given to code: its value has a NUL character; remove it",
    );
}

#[test]
fn the_example_file_matches_the_defaults() {
    let text = include_str!("../../../../docs/examples/config.toml");
    let named: ConfigFile = toml::from_str(text).expect("the example is valid");
    let dir = tempfile::tempdir().expect("a directory");
    let host = HostEnvironment { current_dir: Some(dir.path().to_owned()), ..host() };
    let (named, default) = (Config::new(&named, &host), Config::new(&ConfigFile::default(), &host));
    let (named, default) = (named.expect("valid"), default.expect("valid"));
    assert_eq!(named.policy.files.allowed.len(), 1);
    assert_eq!(format!("{named:?}"), format!("{default:?}"));
}
