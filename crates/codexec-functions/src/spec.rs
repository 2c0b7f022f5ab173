use crate::Argument;

/// A row of the table: everything about an own function but its handler.
#[derive(Clone, Copy, Debug)]
pub struct FunctionSpec {
    /// The name for clients, tool filters and the dispatch.
    pub name: &'static str,
    pub description: &'static str,
    /// In parts, because functions share arguments.
    arguments: &'static [&'static [Argument]],
    /// `None` if only code and the command line can call the function.
    pub tool: Option<ToolSpec>,
    /// True if the function runs code, or waits for code that runs.
    pub runs_code: bool,
    /// `None` if code cannot call the function.
    pub guest: Option<GuestName>,
    pub command: Option<&'static str>,
}

/// How clients of the toolset `codexec` see a function.
#[derive(Clone, Copy, Debug)]
pub struct ToolSpec {
    pub title: &'static str,
    pub effect: ToolEffect,
}

/// The effect of a tool, for clients that ask their user before they call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEffect {
    Reads,
    /// Adds something, and changes nothing else.
    Adds,
    /// Removes something; a second call changes nothing more.
    Removes,
    /// Runs code, which may do anything that the sandbox and the tools permit.
    Runs,
}

/// The name of a function in code, for example `sessions.start`.
#[derive(Clone, Copy, Debug)]
pub struct GuestName {
    /// The global object that has the function.
    pub group: &'static str,
    /// In `snake_case`.
    pub name: &'static str,
    /// The arguments that code may give by position.
    pub positional: &'static [&'static str],
}

impl FunctionSpec {
    pub(crate) const fn new(name: &'static str, description: &'static str) -> FunctionSpec {
        FunctionSpec {
            name,
            description,
            arguments: &[],
            tool: None,
            runs_code: false,
            guest: None,
            command: None,
        }
    }

    pub(crate) const fn arguments_in(
        mut self,
        parts: &'static [&'static [Argument]],
    ) -> FunctionSpec {
        self.arguments = parts;
        self
    }

    pub(crate) const fn tool(mut self, title: &'static str, effect: ToolEffect) -> FunctionSpec {
        self.tool = Some(ToolSpec { title, effect });
        self
    }

    pub(crate) const fn runs_code(mut self) -> FunctionSpec {
        self.runs_code = true;
        self
    }

    pub(crate) const fn guest(
        mut self,
        group: &'static str,
        name: &'static str,
        positional: &'static [&'static str],
    ) -> FunctionSpec {
        self.guest = Some(GuestName { group, name, positional });
        self
    }

    pub(crate) const fn command(mut self, command: &'static str) -> FunctionSpec {
        self.command = Some(command);
        self
    }

    /// Returns every argument that the function takes.
    pub fn arguments(&self) -> impl Iterator<Item = &'static Argument> {
        self.arguments.iter().copied().flatten()
    }
}
