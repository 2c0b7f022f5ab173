//! The handlers of codexec's own functions: sessions, scripts, packages and logs, with JSON in and
//! out. The toolset `codexec`, code and the command line all call these, so that they behave the
//! same everywhere. The table of the functions is in `codexec-functions`.

mod argument_files;
mod error;
mod logs;
mod packages;
mod running;
mod scripts;
mod sessions;
mod shape;

use std::pin::Pin;

use codexec_functions::OwnFunction;
use codexec_types::Image;
use rmcp::model::ContentBlock;
use serde_json::{Map, Value};

pub use self::error::OwnFunctionError;
pub use self::sessions::escape_changes;
pub use self::shape::{artifact_paths, exit_code};
use crate::fields::Fields;
use crate::mcp::link_files;
use crate::{App, Client, FinishedExecution, TextBudget};

/// The result of an own function.
pub struct OwnFunctionResult {
    /// In the shape of the toolset `codexec`.
    pub value: Value,
    pub images: Vec<Image>,
    /// Links to the files that the code has left, for clients of MCP.
    pub links: Vec<ContentBlock>,
    /// True if the request was carried out but failed, e.g. because the code threw.
    pub is_failure: bool,
}

type OwnFuture<'a> =
    Pin<Box<dyn Future<Output = Result<OwnFunctionResult, OwnFunctionError>> + Send + 'a>>;

impl App {
    /// Calls one of codexec's own functions. Boxed, because the code that it runs may call it
    /// again.
    pub fn call_own_function<'a>(
        &'a self,
        function: OwnFunction,
        args: Map<String, Value>,
        client: &'a Client,
    ) -> OwnFuture<'a> {
        Box::pin(async move {
            let fields = Fields::new(args);
            let value = match function {
                OwnFunction::ExecuteCode => {
                    let execution = self.execute_code(fields, client).await?;
                    return Ok(render_execution(&execution, client, shape::execution));
                }
                OwnFunction::SendToSession => {
                    let execution = self.send_to_session(fields, client).await?;
                    return Ok(render_execution(&execution, client, shape::session_execution));
                }
                OwnFunction::RunScript => {
                    let execution = self.run_script(fields, client).await?;
                    return Ok(render_execution(&execution, client, shape::execution));
                }
                OwnFunction::SaveAndRunScript => {
                    return self.save_and_run_script(fields, client).await;
                }
                OwnFunction::StartSession => self.start_session(fields, client).await?,
                OwnFunction::CloseSession => self.close_session(fields, client).await?,
                OwnFunction::ListSessions => self.list_sessions(fields, client)?,
                OwnFunction::SnapshotSession => self.snapshot_session(fields, client).await?,
                OwnFunction::RestoreSession => self.restore_session(fields, client).await?,
                OwnFunction::ListSnapshots => self.list_snapshots(fields, client).await?,
                OwnFunction::SessionHistory => self.session_history(fields, client).await?,
                OwnFunction::InstallPackage => self.install_package(fields, client).await?,
                OwnFunction::ListPackages => self.list_packages(fields, client).await?,
                OwnFunction::SaveScript => self.save_script(fields, client).await?,
                OwnFunction::GetScript => self.get_script(fields, client).await?,
                OwnFunction::ListScripts => self.list_scripts(fields, client).await?,
                OwnFunction::SearchScripts => self.search_scripts(fields, client).await?,
                OwnFunction::ListScriptVersions => {
                    self.list_script_versions(fields, client).await?
                }
                OwnFunction::DeleteScript => self.delete_script(fields, client).await?,
                OwnFunction::SearchExecutionLogs => {
                    self.search_execution_logs(fields, client).await?
                }
                OwnFunction::GetExecutionLog => self.get_execution_log(fields, client).await?,
            };
            Ok(OwnFunctionResult {
                value,
                images: Vec::new(),
                links: Vec::new(),
                is_failure: false,
            })
        })
    }
}

/// Formats an execution as the result of an own function.
fn render_execution(
    execution: &FinishedExecution,
    client: &Client,
    shape: fn(&FinishedExecution, Option<TextBudget>) -> Value,
) -> OwnFunctionResult {
    OwnFunctionResult {
        value: shape(execution, client.text_budget()),
        images: execution.images.shown.clone(),
        links: link_files(execution),
        is_failure: execution.outcome.code().is_some(),
    }
}
