//! Explains to an agent what to ask for when its code may not call a tool: the narrowest entry, in
//! the words of the toolset in use.

use codexec_types::{Admitted, CallCode, CallError, Policy, ServerName, ToolPattern};

/// A toolset's names for the fields of a request, for errors and hints.
#[derive(Clone, Copy, Debug)]
pub struct RequestWords {
    pub tools: &'static str,
    pub servers: &'static str,
    /// Tools are written `mcp__server__tool`, else `server.tool`.
    pub are_tools_joined: bool,
    /// False if no field can allow codexec's own functions.
    pub has_own_functions: bool,
    /// The field with the directory to work in; `None` if requests cannot have one.
    pub directory: Option<&'static str>,
}

impl Default for RequestWords {
    fn default() -> RequestWords {
        RequestWords {
            tools: "allowed_tools",
            servers: "allowed_servers",
            are_tools_joined: false,
            has_own_functions: true,
            directory: Some("working_dir"),
        }
    }
}

/// Completes the error of a call that the settings do not allow.
pub(crate) fn explain_settings(mut error: CallError) -> CallError {
    if is_denied(&error) {
        error.message.push_str(
            "; the user's settings do not allow it (`allowed` under [tools] in config.toml)",
        );
    }
    error
}

/// Completes the error of a call that the code may not make.
pub(crate) fn explain_denied(
    mut error: CallError,
    admitted: &Admitted,
    policy: &Policy,
    fields: RequestWords,
    servers: &[ServerName],
) -> CallError {
    let (true, Some(server), Some(tool)) = (is_denied(&error), &error.server, &error.tool) else {
        return error;
    };
    if policy.tools.check(server, tool).is_err() {
        return explain_settings(error);
    }
    let asked = admitted.asked();
    let is_left_out = |list: &Option<Vec<String>>,
                       parse: &dyn Fn(&String) -> Option<ToolPattern>| {
        list.as_ref().is_some_and(|list| {
            let list = list.iter().filter_map(parse).collect();
            codexec_types::ToolFilter::only(list).check(server, tool).is_err()
        })
    };
    let hint = if is_left_out(&asked.allowed_servers, &|name| Some(ToolPattern::server(name))) {
        fields.describe_server(server)
    } else if is_left_out(&asked.allowed_tools, &|text| ToolPattern::parse(text, servers).ok()) {
        fields.describe_tool(server, tool)
    } else {
        "the code that runs this code may not call it either".to_owned()
    };
    error.message.push_str("; ");
    error.message.push_str(&hint);
    error
}

impl RequestWords {
    fn describe_server(self, server: &str) -> String {
        match server == codexec_types::Grant::SERVER && !self.has_own_functions {
            true => "no request of this tool can allow codexec's own functions".to_owned(),
            false => format!("add \"{server}\" to {}", self.servers),
        }
    }

    fn describe_tool(self, server: &str, tool: &str) -> String {
        let field = self.tools;
        match self.are_tools_joined {
            true => format!("add \"mcp__{server}__{tool}\" to {field}"),
            false => format!("add \"{server}.{tool}\" to {field}"),
        }
    }
}

fn is_denied(error: &CallError) -> bool {
    matches!(error.code, CallCode::ServerNotAllowed | CallCode::ToolNotAllowed)
}
