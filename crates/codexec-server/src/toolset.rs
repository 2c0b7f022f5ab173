//! The toolsets that a client can be given.

/// A set of tools under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolset {
    /// `execute_code`, `search_tools`, `health`.
    Compact,
    /// Sessions, scripts, packages and logs as tools.
    Codexec,
    /// `executeTypescript`, `executePython`, `health`, as in Code Executor MCP.
    CodeExecutor,
    /// `run_python`, as in MCP Server Code Execution Mode.
    CodeExecutionMode,
    /// `code_execution`, `retrieve_tools`, `call_tool`, as in MCPProxy.
    Mcpproxy,
    /// Every upstream tool as `server__tool`.
    Direct,
}

/// The chosen toolsets, at least one, in the order of [`Toolset::ALL`]: of two tools with the same
/// name, the first one wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolsets(Vec<Toolset>);

/// The reason why a list of toolsets is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToolset {
    #[error("there is no toolset {0:?}; there are {all}", all = join_names())]
    Unknown(String),
    #[error("no toolset is named; there are {all}", all = join_names())]
    Nothing,
}

impl Toolset {
    /// Ordered by precedence: a seed's tool comes before another one of the same name.
    pub const ALL: [Toolset; 6] = [
        Toolset::Codexec,
        Toolset::CodeExecutor,
        Toolset::CodeExecutionMode,
        Toolset::Mcpproxy,
        Toolset::Compact,
        Toolset::Direct,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Toolset::Codexec => "codexec",
            Toolset::CodeExecutor => "code-executor",
            Toolset::CodeExecutionMode => "code-execution-mode",
            Toolset::Mcpproxy => "mcpproxy",
            Toolset::Compact => "compact",
            Toolset::Direct => "direct",
        }
    }
}

impl Toolsets {
    /// Parses names in any order; a name may be a comma-separated list.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Toolsets, InvalidToolset> {
        let mut wanted = Vec::new();
        for name in names.into_iter().flat_map(|name| name.split(',')).map(str::trim) {
            let found = Toolset::ALL.into_iter().find(|set| set.name() == name);
            match found {
                Some(set) => wanted.push(set),
                None if name.is_empty() => {}
                None => return Err(InvalidToolset::Unknown(name.chars().take(100).collect())),
            }
        }
        let chosen: Vec<Toolset> =
            Toolset::ALL.into_iter().filter(|set| wanted.contains(set)).collect();
        if chosen.is_empty() { Err(InvalidToolset::Nothing) } else { Ok(Toolsets(chosen)) }
    }

    pub fn has(&self, set: Toolset) -> bool {
        self.0.contains(&set)
    }

    pub fn iter(&self) -> impl Iterator<Item = Toolset> {
        self.0.iter().copied()
    }
}

impl Default for Toolsets {
    fn default() -> Toolsets {
        Toolsets(vec![Toolset::Compact])
    }
}

fn join_names() -> String {
    Toolset::ALL.map(Toolset::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_put_in_fixed_order() {
        let both = Ok(Toolsets(vec![Toolset::Compact, Toolset::Direct]));
        assert_eq!(Toolsets::parse(["direct", "compact"]), both);
        assert_eq!(Toolsets::parse(["direct, compact,direct"]), both);
        assert_eq!(Toolsets::parse(["compact"]), Ok(Toolsets::default()));
        assert_eq!(Toolsets::parse([""]), Err(InvalidToolset::Nothing));
        let unknown = Toolsets::parse(["compact,dircet"]).expect_err("unknown");
        let sentence = "there is no toolset \"dircet\"; there are codexec, code-executor, \
                        code-execution-mode, mcpproxy, compact, direct";
        assert_eq!(unknown.to_string(), sentence);
    }
}
