use std::collections::BTreeSet;

use serde_json::json;

use super::super::super::{Config, File};
use super::*;

fn place() -> Place {
    Place {
        cores: 2,
        user_home: Some("/nowhere".into()),
        state: "/nowhere/.codexec".into(),
        here: Some("/nowhere/project".into()),
        variable: |_| None,
    }
}

fn file(path: &str, value: Json, is_project: bool) -> SettingsFile {
    SettingsFile { path: path.into(), value, is_project }
}

fn taken(system: Toolset, place: &Place, files: &[SettingsFile]) -> Inherited {
    let mut inherited = Inherited::default();
    for given in given(system, place, files, true) {
        inherited.take(&given, place).expect("valid");
    }
    inherited.complete(system, files);
    inherited
}

/// Every row that sets one of ours names a setting that there is, and a value at either end of its
/// range is one that we take.
#[test]
fn what_is_set_is_ours() {
    for (system, _) in SYSTEMS {
        for setting in settings(system) {
            let Here::Keys(keys, form) = &setting.here else { continue };
            for value in samples(*form) {
                let given = Given { setting, value, file: None };
                let mut inherited = Inherited::default();
                inherited.take(&given, &place()).expect(setting.name);
                // What two of ours say together is told apart elsewhere.
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
                let file: File =
                    Value::Table(inherited.table().clone()).try_into().expect(setting.name);
                let config = Config::new(&file, &place());
                let lowered = *keys == ["limits.max-timeout-ms"] || *keys == ["replies.max-chars"];
                if !lowered {
                    config.expect(setting.name);
                }
            }
        }
    }
}

fn samples(form: super::super::form::Form) -> Vec<Json> {
    use super::super::form::Form;
    match form {
        Form::Number(min, max) | Form::Seconds(min, max) | Form::WholeSeconds(min, max) => {
            vec![json!(min), json!(max)]
        }
        Form::Limit(max) => vec![json!(0), json!(max)],
        Form::Written(min, max) => vec![json!(format!("{min}ms")), json!(format!("{max}ms"))],
        Form::Bytes(min, max) => vec![json!(min << 20), json!(max << 20)],
        Form::Memory(min, max) => vec![json!(format!("{min}m")), json!(format!("{max}m"))],
        Form::Flag | Form::FlagOrList | Form::Without(_) => vec![json!(true), json!(false)],
        Form::Word(words) => words.iter().map(|(theirs, _)| json!(theirs)).collect(),
        Form::Path | Form::WholePath | Form::Paths => vec![json!("/tmp")],
        Form::Texts => vec![json!(["mcp__time__*"])],
    }
}

#[test]
fn no_setting_stands_twice() {
    for (system, title) in SYSTEMS {
        let all = settings(system);
        let names: BTreeSet<(&str, bool)> =
            all.iter().map(|row| (row.name, row.source == Source::Entry)).collect();
        assert_eq!(names.len(), all.len(), "{title}");
    }
}

#[test]
fn variables_that_others_have_too_wait_for_their_toolset() {
    let place = Place {
        variable: |name| match name {
            "POOL_QUEUE_SIZE" => Some("7".to_owned()),
            "ALLOWED_PROJECTS" => Some("/srv/a:/srv/b".to_owned()),
            "CODE_EXECUTOR_TIMEOUT_MS" => Some(String::new()),
            _ => None,
        },
        ..place()
    };
    let names = |is_chosen| -> Vec<&str> {
        let given = given(Toolset::CodeExecutor, &place, &[], is_chosen);
        given.iter().map(|given| given.setting.name).collect()
    };
    assert_eq!(names(false), ["ALLOWED_PROJECTS"]);
    assert_eq!(names(true), ["ALLOWED_PROJECTS", "POOL_QUEUE_SIZE"]);
    let inherited = taken(Toolset::CodeExecutor, &place, &[]);
    let expected = "[code-executor]\nprojects = [\"/srv/a\", \"/srv/b\"]\n\n\
                    [gateway]\nqueue = 7\n";
    assert_eq!(toml::to_string(inherited.table()).expect("TOML"), expected);
    assert_eq!(inherited.origin("gateway.queue"), Some("POOL_QUEUE_SIZE"));
}

/// A variable goes before a file, a user's file before a project's, and a project opens nothing.
#[test]
fn the_nearer_word_counts() {
    let place = Place {
        variable: |name| (name == "CODE_EXECUTOR_TIMEOUT_MS").then(|| "2000".to_owned()),
        ..place()
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
    let inherited = taken(Toolset::CodeExecutor, &place, &files);
    let expected = "[code-executor]\nallowed-tools = [\"mcp__time__*\"]\n\n\
                    [languages]\nenabled = [\"typescript\", \"javascript\", \"bash\", \"node\"]\n\n\
                    [limits]\nmax-timeout-ms = 4000\ntimeout-ms = 2000\n";
    assert_eq!(toml::to_string(inherited.table()).expect("TOML"), expected);
    assert!(inherited.servers.is_empty());
}

#[test]
fn mcpproxy_is_off_where_its_file_does_not_say_on() {
    let enabled = |value: Json| {
        let inherited = taken(Toolset::Mcpproxy, &place(), &[file("/m/c.json", value, false)]);
        inherited.get("mcpproxy.enabled").cloned()
    };
    assert_eq!(enabled(json!({})), Some(Value::Boolean(false)));
    assert_eq!(enabled(json!({"enable_code_execution": null})), Some(Value::Boolean(false)));
    assert_eq!(enabled(json!({"enable_code_execution": true})), Some(Value::Boolean(true)));
    assert_eq!(taken(Toolset::Mcpproxy, &place(), &[]).get("mcpproxy.enabled"), None);
}

#[test]
fn a_bad_value_is_told_with_its_place() {
    let told = |value: Json| {
        let files = [file("/m/c.json", json!({"code_execution_timeout_ms": value}), false)];
        let all = given(Toolset::Mcpproxy, &place(), &files, true);
        let error = Inherited::default().take(&all[0], &place()).expect_err("refused");
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
fn our_own_settings_go_first() {
    let inherited: toml::Table =
        toml::from_str("[limits]\ntimeout-ms = 1\nprocesses = 9\n[logs]\nmax-mib = 16")
            .expect("TOML");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config.toml");
    std::fs::write(&path, "[limits]\ntimeout-ms = 5").expect("written");
    let file = File::read(&path, true).expect("valid").over(&inherited).expect("valid");
    let config = Config::new(&file, &place()).expect("valid");
    assert_eq!((config.policy.limits.wall.as_millis(), config.policy.limits.processes), (5, 9));
    assert_eq!(config.logs.retention.max_bytes, 16 << 20);
}
