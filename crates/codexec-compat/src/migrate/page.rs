//! The reference page of every setting of the seeds: docs/reference/seed-settings.md.

use crate::Seed;
use crate::settings::{SeedSetting, SettingSource, settings};

/// Returns the page in Markdown.
pub fn settings_page() -> String {
    let mut page = String::from(
        "# Settings of the systems that codexec replaces\n\n\
         `codexec migrate --list` prints this page. `codexec migrate --from <system>` prints your \
         settings of one system as a `config.toml`.\n\n\
         `config.toml` wins over variables, and variables win over a system's own file. If two \
         rows set the same setting, the upper row wins. A value out of range is an error that \
         names the setting. Variables marked \"with its toolset\", and the files, count only if you \
         chose the system's toolset. With `discovery.enabled = false` or `CODEXEC_DISCOVER=0` the \
         files do not count. A project's file, `./.code-executor.json`, comes last and may only set \
         `security.defaultTimeoutMs`, `security.allowedTools` and `executors.*.enabled`.\n",
    );
    for seed in Seed::ALL {
        page.push_str(&format!("\n## {}, toolset `{}`\n", seed.title(), seed.toolset()));
        let rows = |wanted: fn(SettingSource) -> bool| {
            settings(seed).iter().filter(move |setting| wanted(setting.source))
        };
        let file = match seed {
            Seed::Mcpproxy => "`~/.mcpproxy/mcp_config.json`",
            _ => {
                "`CODE_EXECUTOR_CONFIG_PATH`, `~/.code-executor.json`, \
                 `~/.config/code-executor/config.json`, `~/.code-executor/config.json`, \
                 `./.code-executor.json`"
            }
        };
        section(&mut page, "Variables", rows(SettingSource::is_variable));
        section(&mut page, &format!("Keys of {file}"), rows(|source| source == SettingSource::Key));
        let servers = "Keys of a server's entry";
        section(&mut page, servers, rows(|source| source == SettingSource::Entry));
    }
    page
}

fn section(page: &mut String, title: &str, settings: impl Iterator<Item = &'static SeedSetting>) {
    let rows: Vec<String> = settings
        .map(|setting| {
            let when =
                if setting.source == SettingSource::Bare { " (with its toolset)" } else { "" };
            format!("| `{}`{when} | {} |\n", setting.name, setting.describe())
        })
        .collect();
    if !rows.is_empty() {
        page.push_str(&format!(
            "\n{title}:\n\n| setting | in codexec |\n|---|---|\n{}",
            rows.concat()
        ));
    }
}
