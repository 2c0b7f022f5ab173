use std::collections::BTreeSet;

use serde_json::json;

use super::*;

fn host() -> UserEnvironment {
    UserEnvironment {
        home: Some("/nowhere".into()),
        current_dir: Some("/nowhere/project".into()),
        variable: |_| None,
    }
}

fn file(path: &str, value: Json, is_project: bool) -> SettingsFile {
    SettingsFile { path: path.into(), value, is_project }
}

fn inherit(seed: Seed, host: &UserEnvironment, files: &[SettingsFile]) -> InheritedSettings {
    let mut inherited = InheritedSettings::default();
    for value in collect_values(seed, host, files, true) {
        inherited.apply(&value, host).expect("valid");
    }
    inherited.apply_defaults(seed, files);
    inherited
}

#[test]
fn no_setting_is_listed_twice() {
    for seed in Seed::ALL {
        let title = seed.title();
        let all = settings(seed);
        let names: BTreeSet<(&str, bool)> =
            all.iter().map(|row| (row.name, row.source == SettingSource::Entry)).collect();
        assert_eq!(names.len(), all.len(), "{title}");
    }
}

#[test]
fn bare_variables_count_only_with_their_toolset() {
    let host = UserEnvironment {
        variable: |name| match name {
            "POOL_QUEUE_SIZE" => Some("7".to_owned()),
            "ALLOWED_PROJECTS" => Some("/srv/a:/srv/b".to_owned()),
            "CODE_EXECUTOR_TIMEOUT_MS" => Some(String::new()),
            _ => None,
        },
        ..host()
    };
    let names = |is_chosen| -> Vec<&str> {
        let values = collect_values(Seed::CodeExecutor, &host, &[], is_chosen);
        values.iter().map(|value| value.setting.name).collect()
    };
    assert_eq!(names(false), ["ALLOWED_PROJECTS"]);
    assert_eq!(names(true), ["ALLOWED_PROJECTS", "POOL_QUEUE_SIZE"]);
    let inherited = inherit(Seed::CodeExecutor, &host, &[]);
    let expected = "[code-executor]\nprojects = [\"/srv/a\", \"/srv/b\"]\n\n\
                    [gateway]\nqueue = 7\n";
    assert_eq!(toml::to_string(inherited.table()).expect("TOML"), expected);
    assert_eq!(inherited.origin("gateway.queue"), Some("POOL_QUEUE_SIZE"));
}

/// Variables win over files, the user's file over a project's, and a project widens nothing.
#[test]
fn variables_win_over_files_and_users_over_projects() {
    let host = UserEnvironment {
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
    let inherited = inherit(Seed::CodeExecutor, &host, &files);
    let expected = "[code-executor]\nallowed-tools = [\"mcp__time__*\"]\n\n\
                    [languages]\nenabled = [\"typescript\", \"javascript\", \"bash\", \"node\"]\n\n\
                    [limits]\nmax-timeout-ms = 4000\ntimeout-ms = 2000\n";
    assert_eq!(toml::to_string(inherited.table()).expect("TOML"), expected);
    assert!(inherited.servers.is_empty());
}

#[test]
fn mcpproxy_is_disabled_unless_its_file_enables_it() {
    let enabled = |value: Json| {
        let inherited = inherit(Seed::Mcpproxy, &host(), &[file("/m/c.json", value, false)]);
        inherited.get("mcpproxy.enabled").cloned()
    };
    assert_eq!(enabled(json!({})), Some(Value::Boolean(false)));
    assert_eq!(enabled(json!({"enable_code_execution": null})), Some(Value::Boolean(false)));
    assert_eq!(enabled(json!({"enable_code_execution": true})), Some(Value::Boolean(true)));
    assert_eq!(inherit(Seed::Mcpproxy, &host(), &[]).get("mcpproxy.enabled"), None);
}

#[test]
fn an_invalid_value_is_reported_with_its_origin() {
    let told = |value: Json| {
        let files = [file("/m/c.json", json!({"code_execution_timeout_ms": value}), false)];
        let all = collect_values(Seed::Mcpproxy, &host(), &files, true);
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
