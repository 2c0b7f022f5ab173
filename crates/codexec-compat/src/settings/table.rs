//! Every setting of the seeds, and its meaning in codexec. docs/reference/seed-settings.md is
//! generated from this table.

mod code_execution_mode;
mod code_executor;
mod codexec;
mod mcpproxy;

use super::value_format::ValueFormat;
use crate::Seed;

/// One setting of a seed.
pub struct SeedSetting {
    pub name: &'static str,
    pub source: SettingSource,
    pub meaning: SettingMeaning,
}

/// The source of a seed's setting, which decides when it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// A variable with a name that only this seed uses. Counts whenever it is set.
    Variable,
    /// A variable whose name other programs use too. Counts if this seed's toolset is chosen.
    Bare,
    /// A key of the seed's own file, which is read if its toolset is chosen.
    Key,
    /// A key of a server's entry.
    Entry,
}

/// The effect of a seed's setting in codexec.
pub enum SettingMeaning {
    /// Sets these settings of codexec.
    Keys(&'static [&'static str], ValueFormat),
    /// Has another effect, described here.
    Used(&'static str),
    /// Has no effect, for this reason.
    Ignored(&'static str),
    /// Has no effect with this value. Any other value is an error for this reason, because ignoring
    /// it would be dangerous.
    Only(&'static str, &'static str),
}

/// Returns all settings of one seed. If two set the same key, the first one that is set counts.
pub fn settings(seed: Seed) -> &'static [SeedSetting] {
    match seed {
        Seed::Codexec => codexec::SETTINGS,
        Seed::CodeExecutor => code_executor::SETTINGS,
        Seed::CodeExecutionMode => code_execution_mode::SETTINGS,
        Seed::Mcpproxy => mcpproxy::SETTINGS,
    }
}

const fn variable(name: &'static str, meaning: SettingMeaning) -> SeedSetting {
    SeedSetting { name, source: SettingSource::Variable, meaning }
}

const fn bare(name: &'static str, meaning: SettingMeaning) -> SeedSetting {
    SeedSetting { name, source: SettingSource::Bare, meaning }
}

const fn key(name: &'static str, meaning: SettingMeaning) -> SeedSetting {
    SeedSetting { name, source: SettingSource::Key, meaning }
}

const fn entry(name: &'static str, meaning: SettingMeaning) -> SeedSetting {
    SeedSetting { name, source: SettingSource::Entry, meaning }
}

impl SettingSource {
    pub fn is_variable(self) -> bool {
        matches!(self, SettingSource::Variable | SettingSource::Bare)
    }
}

impl SeedSetting {
    /// Describes the meaning in one line for the reference page.
    pub fn describe(&self) -> String {
        match &self.meaning {
            SettingMeaning::Keys(keys, format) => {
                let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                format!("{}: {format}", keys.join(", "))
            }
            SettingMeaning::Used(how) => (*how).to_owned(),
            SettingMeaning::Ignored(why) => format!("no effect: {why}"),
            SettingMeaning::Only(value, why) => {
                format!("only `{value}`, without effect; another value is an error: {why}")
            }
        }
    }
}
