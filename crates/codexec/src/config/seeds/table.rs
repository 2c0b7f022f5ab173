//! Every setting of the systems that we replace, and what it is here. The page
//! docs/reference/seed-settings.md is made from it.

mod code_execution_mode;
mod code_executor;
mod codexec;
mod mcpproxy;

use codexec_server::Toolset;

use super::form::Form;

/// One setting of theirs.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) source: Source,
    pub(crate) here: Here,
}

/// Where it is set, and when it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A variable that only this system has: it counts whenever it is set.
    Variable,
    /// A variable that means something else to other programs: it counts when this system's
    /// toolset is chosen.
    Bare,
    /// In the system's own file, which is read when its toolset is chosen.
    Key,
    /// In an entry of a file that names servers.
    Entry,
}

pub(crate) enum Here {
    /// Settings of ours that get its value.
    Keys(&'static [&'static str], Form),
    /// What else it does here.
    Used(&'static str),
    /// Why it does nothing here.
    Nothing(&'static str),
}

/// The systems, as they are told apart here: by the toolset that stands for each.
pub(crate) const SYSTEMS: [(Toolset, &str); 4] = [
    (Toolset::CodeExecutor, "Code Executor MCP"),
    (Toolset::Codexec, "CodeExec MCP"),
    (Toolset::CodeExecutionMode, "MCP Server Code Execution Mode"),
    (Toolset::Mcpproxy, "MCPProxy"),
];

/// All of one system; where two are for one of ours, the first that is set counts.
pub(crate) fn settings(system: Toolset) -> &'static [Setting] {
    match system {
        Toolset::Codexec => codexec::SETTINGS,
        Toolset::CodeExecutor => code_executor::SETTINGS,
        Toolset::CodeExecutionMode => code_execution_mode::SETTINGS,
        Toolset::Mcpproxy => mcpproxy::SETTINGS,
        Toolset::Compact | Toolset::Direct => &[],
    }
}

const fn variable(name: &'static str, here: Here) -> Setting {
    Setting { name, source: Source::Variable, here }
}

const fn bare(name: &'static str, here: Here) -> Setting {
    Setting { name, source: Source::Bare, here }
}

const fn key(name: &'static str, here: Here) -> Setting {
    Setting { name, source: Source::Key, here }
}

const fn entry(name: &'static str, here: Here) -> Setting {
    Setting { name, source: Source::Entry, here }
}

impl Source {
    pub(crate) fn is_variable(self) -> bool {
        matches!(self, Source::Variable | Source::Bare)
    }
}

impl Setting {
    /// What it is here, as a line of the reference.
    pub(crate) fn meaning(&self) -> String {
        match &self.here {
            Here::Keys(keys, form) => {
                let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                format!("{}: {form}", keys.join(", "))
            }
            Here::Used(how) => (*how).to_owned(),
            Here::Nothing(why) => format!("no effect: {why}"),
        }
    }
}
