//! The toolset `code-executor`: the tools of Code Executor MCP, in its shapes.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::Tool;
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use super::codexec::talk;
use super::content;
use super::talk::{Said, Talk};
use crate::{App, Reply};

pub(super) fn tools() -> Vec<Tool> {
    Vec::new()
}

pub(super) fn is_one(name: &str) -> bool {
    ["executeTypescript", "executePython", "run-typescript-code", "run-python-code", "health"]
        .contains(&name)
}

pub(super) fn begin(
    app: &Arc<App>,
    _name: String,
    _arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Talk {
    talk(app, context, |_, _| async {
        Said::Ours(Box::new(content(Reply::error("not built yet".to_owned()))))
    })
}
