//! The reference of every setting of the systems that we replace.

use crate::config::seeds::table::{SYSTEMS, Setting, Source, settings};

pub(super) fn page() -> String {
    let mut page = String::from(
        "# Settings of the systems that codexec replaces\n\n\
         Made by `codexec migrate --list`. `codexec migrate --from <system>` prints those that you \
         have set as a `config.toml`.\n\n\
         What `config.toml` says goes first, then variables, then a system's own file; where two \
         are for one setting, the upper one here counts. A value out of range is an error that \
         names it. Variables that other programs have too, and the files, count only when the \
         system's toolset is chosen; with `discovery.enabled = false` or `CODEXEC_DISCOVER=0` the \
         files do not. A file of a project, `./.code-executor.json`, counts least and may only say \
         `security.defaultTimeoutMs`, `security.allowedTools` and `executors.*.enabled`.\n",
    );
    for (system, title) in SYSTEMS {
        page.push_str(&format!("\n## {title}, toolset `{}`\n", system.name()));
        let rows = |wanted: fn(Source) -> bool| {
            settings(system).iter().filter(move |setting| wanted(setting.source))
        };
        let file = match system {
            codexec_server::Toolset::Mcpproxy => "`~/.mcpproxy/mcp_config.json`",
            _ => {
                "`CODE_EXECUTOR_CONFIG_PATH`, `~/.code-executor.json`, \
                 `~/.config/code-executor/config.json`, `~/.code-executor/config.json`, \
                 `./.code-executor.json`"
            }
        };
        section(&mut page, "Variables", rows(Source::is_variable));
        section(&mut page, &format!("Keys of {file}"), rows(|source| source == Source::Key));
        let servers = "Keys of a server in its files";
        section(&mut page, servers, rows(|source| source == Source::Entry));
    }
    page
}

fn section(page: &mut String, title: &str, settings: impl Iterator<Item = &'static Setting>) {
    let rows: Vec<String> = settings
        .map(|setting| {
            let when = if setting.source == Source::Bare { " (with its toolset)" } else { "" };
            format!("| `{}`{when} | {} |\n", setting.name, setting.meaning())
        })
        .collect();
    if !rows.is_empty() {
        page.push_str(&format!("\n{title}:\n\n| theirs | here |\n|---|---|\n{}", rows.concat()));
    }
}
