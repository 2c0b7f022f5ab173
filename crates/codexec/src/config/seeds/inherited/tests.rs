use std::collections::BTreeSet;

use serde_json::json;

use super::super::super::{Config, ConfigFile};
use super::*;

fn host() -> HostEnvironment {
    HostEnvironment {
        cores: 2,
        user_home: Some("/nowhere".into()),
        state_dir: "/nowhere/.codexec".into(),
        current_dir: Some("/nowhere/project".into()),
        variable: |_| None,
    }
}

fn file(path: &str, value: Json, is_project: bool) -> SettingsFile {
    SettingsFile { path: path.into(), value, is_project }
}

fn inherit(system: Toolset, host: &HostEnvironment, files: &[SettingsFile]) -> InheritedSettings {
    let mut inherited = InheritedSettings::default();
    for value in collect_values(system, host, files, true) {
        inherited.apply(&value, host).expect("valid");
    }
    inherited.apply_defaults(system, files);
    inherited
}

/// Every row of the table sets a setting that exists, and both ends of its range are accepted.
#[test]
fn every_row_sets_an_existing_setting() {
    for (system, _) in SYSTEMS {
        for setting in settings(system) {
            let SettingMeaning::Keys(keys, format) = &setting.meaning else { continue };
            for value in samples(*format) {
                let seed_value = SeedValue { setting, value, file: None };
                let mut inherited = InheritedSettings::default();
                inherited.apply(&seed_value, &host()).expect(setting.name);
                // Settings that depend on each other are tested elsewhere.
                for (key, value) in [
                    ("limits.max-timeout-ms", 86_400_000),
                    ("code-execution-mode.max-timeout-ms", 86_400_000),
                    ("gateway.max-total-timeout-ms", 86_400_000),
                    ("replies.max-chars", 1_000_000),
                ] {
                    inherited.set(key, Value::Integer(value), String::new());
                }
                if *keys == ["code-execution-mode.max-timeout-ms"] {
                    inherited.set(
                        "code-execution-mode.timeout-ms",
                        Value::Integer(1),
                        String::new(),
                    );
                }
                let file: ConfigFile =
                    Value::Table(inherited.table().clone()).try_into().expect(setting.name);
                let config = Config::new(&file, &host());
                let lowered = *keys == ["limits.max-timeout-ms"] || *keys == ["replies.max-chars"];
                if !lowered {
                    config.expect(setting.name);
                }
            }
        }
    }
}

fn samples(format: super::super::value_format::ValueFormat) -> Vec<Json> {
    use super::super::value_format::ValueFormat;
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
fn no_setting_is_listed_twice() {
    for (system, title) in SYSTEMS {
        let all = settings(system);
        let names: BTreeSet<(&str, bool)> =
            all.iter().map(|row| (row.name, row.source == SettingSource::Entry)).collect();
        assert_eq!(names.len(), all.len(), "{title}");
    }
}

#[test]
fn bare_variables_count_only_with_their_toolset() {
    let host = HostEnvironment {
        variable: |name| match name {
            "POOL_QUEUE_SIZE" => Some("7".to_owned()),
            "ALLOWED_PROJECTS" => Some("/srv/a:/srv/b".to_owned()),
            "CODE_EXECUTOR_TIMEOUT_MS" => Some(String::new()),
            _ => None,
        },
        ..host()
    };
    let names = |is_chosen| -> Vec<&str> {
        let values = collect_values(Toolset::CodeExecutor, &host, &[], is_chosen);
        values.iter().map(|value| value.setting.name).collect()
    };
    assert_eq!(names(false), ["ALLOWED_PROJECTS"]);
    assert_eq!(names(true), ["ALLOWED_PROJECTS", "POOL_QUEUE_SIZE"]);
    let inherited = inherit(Toolset::CodeExecutor, &host, &[]);
    let expected = "[code-executor]\nprojects = [\"/srv/a\", \"/srv/b\"]\n\n\
                    [gateway]\nqueue = 7\n";
    assert_eq!(toml::to_string(inherited.table()).expect("TOML"), expected);
    assert_eq!(inherited.origin("gateway.queue"), Some("POOL_QUEUE_SIZE"));
}

/// Variables win over files, the user's file over a project's, and a project widens nothing.
#[test]
fn variables_win_over_files_and_users_over_projects() {
    let host = HostEnvironment {
        variable: |name| (name == "CODE_EXECUTOR_TIMEOUT_MS").then(|| "2000".to_owned()),
        ..host()
    };
    let user = json!({"security": {"defaultTimeoutMs": 3000, "maxTimeoutMs": 4000}});
    let project = json!({
        "security": {
            "allowedTools": ["mcp__time__*"], "maxTimeoutMs": 600_000, "auditLogPath": "/etc/x",
            "enableAuditLog": true, "allowRead": ["/"],
        },
        "executors": {
            "python": {"enabled": false, "pythonPath": "/tmp/evil"}, "typescript": {"enabled": true},
        },
        "mcpConfigPath": "/tmp/evil.json",
    });
    let files = [file("/u", user, false), file("/p", project, true)];
    let inherited = inherit(Toolset::CodeExecutor, &host, &files);
    let expected = "[code-executor]\nallowed-tools = [\"mcp__time__*\"]\n\n\
                    [languages]\nenabled = [\"typescript\", \"javascript\", \"bash\", \"node\"]\n\n\
                    [limits]\nmax-timeout-ms = 4000\ntimeout-ms = 2000\n";
    assert_eq!(toml::to_string(inherited.table()).expect("TOML"), expected);
    assert!(inherited.servers.is_empty());
}

#[test]
fn mcpproxy_is_disabled_unless_its_file_enables_it() {
    let enabled = |value: Json| {
        let inherited = inherit(Toolset::Mcpproxy, &host(), &[file("/m/c.json", value, false)]);
        inherited.get("mcpproxy.enabled").cloned()
    };
    assert_eq!(enabled(json!({})), Some(Value::Boolean(false)));
    assert_eq!(enabled(json!({"enable_code_execution": null})), Some(Value::Boolean(false)));
    assert_eq!(enabled(json!({"enable_code_execution": true})), Some(Value::Boolean(true)));
    assert_eq!(inherit(Toolset::Mcpproxy, &host(), &[]).get("mcpproxy.enabled"), None);
}

#[test]
fn an_invalid_value_is_reported_with_its_origin() {
    let told = |value: Json| {
        let files = [file("/m/c.json", json!({"code_execution_timeout_ms": value}), false)];
        let all = collect_values(Toolset::Mcpproxy, &host(), &files, true);
        let error = InheritedSettings::default().apply(&all[0], &host()).expect_err("refused");
        error.to_string()
    };
    let end = "is out of range; it must be 1 to 600000";
    let name = "/m/c.json: `code_execution_timeout_ms";
    assert_eq!(told(json!(600_001)), format!("{name} = 600001` {end}"));
    assert_eq!(told(json!("soon")), format!("{name} = \"soon\"` {end}"));
    let long = told(json!("x".repeat(10_000)));
    assert!(long.len() < 300, "{long}");
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
