//! The toolset `code-executor`: the tools of Code Executor MCP, in its format.

mod audit;
mod audit_log;
mod calls;
mod health;
mod permissions;
mod refusal;
mod request;
mod result;
mod settings;
mod tools;

use std::sync::Arc;

use codexec_server::mcp::{CallOutcome, PendingCall, ToolRequest, Toolset};
use codexec_server::{App, Client, DiscoveryRules};
use codexec_types::Language;
use rmcp::model::{CallToolResult, JsonObject, Tool};

use self::audit_log::AuditLog;
use self::calls::CallSummaries;
use self::refusal::ExecutorRefusal;
use self::request::ExecutorRequest;
pub use self::settings::ExecutorSettings;
use crate::Seed;

const INSTRUCTIONS: &str = "executeTypescript and executePython run code in a sandbox. Find tools in \
 the code: discoverMCPTools(), searchTools(query), getToolSchema(name); Python the same in \
 snake_case. Call them: await callMCPTool('mcp__server__tool', {..}), each named in allowedTools \
 (mcp__server__* is all of a server's).\n";

/// The toolset `code-executor`: `executeTypescript`, `executePython`, `health`.
#[derive(Clone)]
pub struct CodeExecutorTools {
    settings: Arc<ExecutorSettings>,
    audit_log: Option<Arc<AuditLog>>,
}

impl CodeExecutorTools {
    pub fn new(settings: ExecutorSettings) -> CodeExecutorTools {
        let audit_log = settings.audit_log.clone().map(|path| Arc::new(AuditLog::new(path)));
        CodeExecutorTools { settings: Arc::new(settings), audit_log }
    }

    async fn execute(
        &self,
        app: &App,
        language: Language,
        arguments: JsonObject,
        client: &Client,
    ) -> Result<CallToolResult, ExecutorRefusal> {
        let ExecutorRequest { mut request, allowed_tools, visible } =
            ExecutorRequest::read(app, &self.settings, client, language, arguments).await?;
        let observers = audit::observers(self.audit_log.as_ref());
        let most = self.settings.requests_per_minute;
        request.discover(visible, DiscoveryRules::new(&client.connection, most, observers));
        let about = audit::CodeInfo::of(&request, allowed_tools);
        let execution = app.execute(request, client).await?;
        let calls = CallSummaries::of(app, client, &execution).await;
        if let Some(log) = &self.audit_log {
            log.append(&audit::execution_line(&about, &execution, &calls, client)).await;
        }
        Ok(result::result(&execution, &calls, client.connection.budget()))
    }
}

impl Toolset for CodeExecutorTools {
    fn name(&self) -> &'static str {
        Seed::CodeExecutor.toolset()
    }

    fn instructions(&self) -> &'static str {
        INSTRUCTIONS
    }

    fn tools(&self) -> Vec<Tool> {
        tools::tools()
    }

    fn has_tool(&self, tool: &str) -> bool {
        is_tool(tool)
    }

    fn begin(&self, tool: &str, arguments: JsonObject, request: &ToolRequest<'_>) -> PendingCall {
        let (toolset, language) = (self.clone(), language(tool));
        let connected_at = request.connected_at;
        let is_structured_only = request.shows_structured_only();
        request.start(move |app, client| async move {
            let mut done = match language {
                Some(language) => toolset.execute(&app, language, arguments, &client).await,
                None => {
                    let has_audit_log = toolset.audit_log.is_some();
                    health::report(&app, &client, arguments, (connected_at, has_audit_log)).await
                }
            };
            if let (Ok(result), true) = (&mut done, is_structured_only) {
                result::remove_text(result);
            }
            CallOutcome::own(done.unwrap_or_else(|refusal| refusal.result()))
        })
    }
}

/// True for every tool name, including the older ones with hyphens.
fn is_tool(name: &str) -> bool {
    language(name).is_some() || name == "health"
}

fn language(tool: &str) -> Option<Language> {
    match tool {
        "executeTypescript" | "run-typescript-code" => Some(Language::TypeScript),
        "executePython" | "run-python-code" => Some(Language::Python),
        _ => None,
    }
}
