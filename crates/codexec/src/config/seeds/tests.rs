use codexec_compat::settings::{
    InheritedSettings, SeedValue, SettingMeaning, ValueFormat, settings,
};
use codexec_compat::{OutputMode, Seed};
use serde_json::{Value, json};

use super::super::Config;
use super::*;

fn host() -> HostEnvironment {
    HostEnvironment {
        cores: 2,
        user_home: Some("/home/ann".into()),
        state_dir: "/home/ann/.codexec".into(),
        current_dir: None,
        variable: |_| None,
    }
}

fn read(text: &str) -> Result<Seeds, String> {
    let file: ConfigFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let config = Config::new(&file, &host()).map_err(|error| error.to_string())?;
    Ok(config.seeds)
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    assert_eq!(read(text).expect_err("refused"), expected);
}

#[test]
fn the_defaults_are_those_of_the_seeds() {
    let seeds = read("").expect("valid");
    assert_eq!(format!("{seeds:?}"), format!("{:?}", Seeds::default()));
}

#[test]
fn settings_are_read_independently() {
    let seeds = read(
        "[code-executor]\nprojects = ['~/work', '/srv']\naudit = true\n\
         allowed-tools = ['mcp__time__*']\n\
         [code-execution-mode]\ntimeout-ms = 1000\nmax-timeout-ms = 2000\noutput = 'toon'\n\
         [mcpproxy]\nenabled = false\ntimeout-ms = 3000\nmax-tool-calls = 4\ntools-limit = 5\n\
         scripts = '~/s'",
    );
    let seeds = seeds.expect("valid");
    assert_eq!(seeds.executor.projects, ["/home/ann/work", "/srv"].map(PathBuf::from));
    let log = "/home/ann/.code-executor/audit-logs/audit.jsonl";
    assert_eq!(seeds.executor.audit_log.as_deref(), Some(Path::new(log)));
    assert_eq!(seeds.executor.allowed_tools, Some(vec!["mcp__time__*".to_owned()]));
    let bridge = &seeds.bridge;
    assert_eq!((bridge.timeout.as_millis(), bridge.max_timeout.as_millis()), (1_000, 2_000));
    assert_eq!(bridge.output, OutputMode::Toon);
    let proxy = &seeds.proxy;
    assert_eq!((proxy.is_enabled, proxy.timeout.as_millis()), (false, 3_000));
    assert_eq!((proxy.max_tool_calls, proxy.tools_limit), (Some(4), 5));
    assert_eq!(proxy.scripts.as_deref(), Some(Path::new("/home/ann/s")));
}

/// A toolset's default timeouts stay below the common maximum.
#[test]
fn the_common_maximum_applies() {
    let seeds = read("[limits]\nmax-timeout-ms = 20000").expect("valid");
    let timeouts = [seeds.bridge.timeout, seeds.bridge.max_timeout, seeds.proxy.timeout];
    assert_eq!(timeouts, [Duration::from_secs(20); 3]);
    check_refused(
        "[limits]\nmax-timeout-ms = 20000\n[mcpproxy]\ntimeout-ms = 20001",
        "`mcpproxy.timeout-ms = 20001` is out of range; it must be 1 to 20000",
    );
}

#[test]
fn invalid_seed_settings_are_explained() {
    for (text, expected) in [
        (
            "[limits]\nmax-timeout-ms = 900000\n[mcpproxy]\ntimeout-ms = 600001",
            "`mcpproxy.timeout-ms = 600001` is out of range; it must be 1 to 600000",
        ),
        (
            "[code-execution-mode]\ntimeout-ms = 120001",
            "`code-execution-mode.timeout-ms = 120001` is out of range; it must be 1 to 120000",
        ),
        (
            "[code-execution-mode]\nmax-timeout-ms = 0",
            "`code-execution-mode.max-timeout-ms = 0` is out of range; it must be 1 to 300000",
        ),
        (
            "[mcpproxy]\ntools-limit = 1001",
            "`mcpproxy.tools-limit = 1001` is out of range; it must be 1 to 1000",
        ),
        (
            "[mcpproxy]\nmax-tool-calls = 100001",
            "`mcpproxy.max-tool-calls = 100001` is out of range; it must be 0 to 100000",
        ),
        (
            "[code-execution-mode]\noutput = 'xml'",
            "`code-execution-mode.output` is \"xml\"; write \"compact\" or \"toon\"",
        ),
        (
            "[code-executor]\nprojects = ['work']",
            "`code-executor.projects = \"work\"` is not an absolute path; start it with `/` or `~/`",
        ),
        (
            "[replies]\nmax-chars = 99",
            "`replies.max-chars = 99` is out of range; it must be 100 to 1000000",
        ),
        (
            "[replies]\nmax-chars = 100\nhead = 60\ntail = 41",
            "`replies.tail = 41` is out of range; it must be 0 to 40",
        ),
    ] {
        check_refused(text, expected);
    }
}

/// Every row of the table sets a setting that exists, and both ends of its range are accepted.
#[test]
fn every_row_sets_an_existing_setting() {
    for seed in Seed::ALL {
        for setting in settings(seed) {
            let SettingMeaning::Keys(keys, format) = &setting.meaning else { continue };
            for value in samples(*format) {
                let seed_value = SeedValue { setting, value, file: None };
                let mut inherited = InheritedSettings::default();
                inherited.apply(&seed_value, &host().user()).expect(setting.name);
                let mut table = inherited.table().clone();
                // Settings that depend on each other are tested elsewhere.
                for (key, value) in [
                    ("limits.max-timeout-ms", 86_400_000),
                    ("code-execution-mode.max-timeout-ms", 86_400_000),
                    ("gateway.max-total-timeout-ms", 86_400_000),
                    ("replies.max-chars", 1_000_000),
                ] {
                    set_default(&mut table, key, value);
                }
                if *keys == ["code-execution-mode.max-timeout-ms"] {
                    set_default(&mut table, "code-execution-mode.timeout-ms", 1);
                }
                let file: ConfigFile = toml::Value::Table(table).try_into().expect(setting.name);
                let config = Config::new(&file, &host());
                let lowered = *keys == ["limits.max-timeout-ms"] || *keys == ["replies.max-chars"];
                if !lowered {
                    config.expect(setting.name);
                }
            }
        }
    }
}

/// Sets `path` unless the table has it.
fn set_default(table: &mut toml::Table, path: &str, value: i64) {
    let (section, key) = path.split_once('.').expect("a section and a key");
    let section = table.entry(section).or_insert_with(|| toml::Table::new().into());
    let section = section.as_table_mut().expect("a table");
    section.entry(key).or_insert(value.into());
}

fn samples(format: ValueFormat) -> Vec<Value> {
    match format {
        ValueFormat::Number(min, max)
        | ValueFormat::Seconds(min, max)
        | ValueFormat::WholeSeconds(min, max) => {
            vec![json!(min), json!(max)]
        }
        ValueFormat::Limit(max) => vec![json!(0), json!(max)],
        ValueFormat::Duration(min, max) => {
            vec![json!(format!("{min}ms")), json!(format!("{max}ms"))]
        }
        ValueFormat::Bytes(min, max) => vec![json!(min << 20), json!(max << 20)],
        ValueFormat::Memory(min, max) => vec![json!(format!("{min}m")), json!(format!("{max}m"))],
        ValueFormat::Flag | ValueFormat::FlagOrList | ValueFormat::RemoveLanguages(_) => {
            vec![json!(true), json!(false)]
        }
        ValueFormat::Word(words) => words.iter().map(|(theirs, _)| json!(theirs)).collect(),
        ValueFormat::Path | ValueFormat::AbsolutePath | ValueFormat::Paths => vec![json!("/tmp")],
        ValueFormat::Strings => vec![json!(["mcp__time__*"])],
    }
}

#[test]
fn config_toml_wins_over_inherited_settings() {
    let inherited: toml::Table =
        toml::from_str("[limits]\ntimeout-ms = 1\nprocesses = 9\n[logs]\nmax-mib = 16")
            .expect("TOML");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config.toml");
    std::fs::write(&path, "[limits]\ntimeout-ms = 5").expect("written");
    let file = ConfigFile::read(&path, true).expect("valid").over(&inherited).expect("valid");
    let config = Config::new(&file, &host()).expect("valid");
    assert_eq!((config.policy.limits.wall.as_millis(), config.policy.limits.processes), (5, 9));
    assert_eq!(config.logs.retention.max_bytes, 16 << 20);
}
