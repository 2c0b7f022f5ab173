//! codexec's own functions: sessions, scripts, packages and logs, called by name with JSON in and
//! out. The toolset `codexec`, code and the command line all call these, so that they behave the
//! same everywhere.

mod error;
mod logs;
mod packages;
mod running;
mod scripts;
mod sessions;
mod shape;

use std::pin::Pin;

use codexec_types::Image;
use serde_json::{Map, Value};

pub use self::error::OwnFunctionError;
pub(crate) use self::shape::exit_code;
use crate::fields::Fields;
use crate::{App, Client, FinishedExecution, TextBudget};

/// The result of an own function.
pub struct OwnFunctionResult {
    /// In the shape of the toolset `codexec`.
    pub value: Value,
    pub images: Vec<Image>,
    /// True if the request was carried out but failed, e.g. because the code threw.
    pub is_failure: bool,
}

type OwnFuture<'a> =
    Pin<Box<dyn Future<Output = Result<OwnFunctionResult, OwnFunctionError>> + Send + 'a>>;

/// The functions that clients see as tools, in this order.
pub const TOOLS: [&str; 15] = [
    "execute_code",
    "start_session",
    "send_to_session",
    "close_session",
    "list_sessions",
    "install_package",
    "save_script",
    "get_script",
    "list_scripts",
    "search_scripts",
    "run_script",
    "save_and_run_script",
    "delete_script",
    "search_execution_logs",
    "get_execution_log",
];

/// The functions that only code and the command line can call.
pub const OTHERS: [&str; 6] = [
    "snapshot_session",
    "restore_session",
    "list_snapshots",
    "session_history",
    "list_packages",
    "list_script_versions",
];

/// The functions that run code, or wait for code that runs.
pub(crate) const RUN_CODE: [&str; 8] = [
    "execute_code",
    "send_to_session",
    "run_script",
    "save_and_run_script",
    "start_session",
    "close_session",
    "restore_session",
    "install_package",
];

impl App {
    /// Calls one of codexec's own functions. Boxed, because the code that it runs may call it
    /// again.
    pub fn call_own_function<'a>(
        &'a self,
        name: &'a str,
        args: Map<String, Value>,
        client: &'a Client,
    ) -> OwnFuture<'a> {
        Box::pin(async move {
            let fields = Fields::new(args);
            let value = match name {
                "execute_code" => {
                    let execution = self.execute_code(fields, client).await?;
                    return Ok(self.render_execution(&execution, client, shape::execution));
                }
                "send_to_session" => {
                    let execution = self.send_to_session(fields, client).await?;
                    return Ok(self.render_execution(&execution, client, shape::session_execution));
                }
                "run_script" => {
                    let execution = self.run_script(fields, client).await?;
                    return Ok(self.render_execution(&execution, client, shape::execution));
                }
                "save_and_run_script" => return self.save_and_run_script(fields, client).await,
                "start_session" => self.start_session(fields, client).await?,
                "close_session" => self.close_session(fields, client).await?,
                "list_sessions" => self.list_sessions(fields, client)?,
                "snapshot_session" => self.snapshot_session(fields, client).await?,
                "restore_session" => self.restore_session(fields, client).await?,
                "list_snapshots" => self.list_snapshots(fields, client).await?,
                "session_history" => self.session_history(fields, client).await?,
                "install_package" => self.install_package(fields, client).await?,
                "list_packages" => self.list_packages(fields, client).await?,
                "save_script" => self.save_script(fields, client).await?,
                "get_script" => self.get_script(fields).await?,
                "list_scripts" => self.list_scripts(fields).await?,
                "search_scripts" => self.search_scripts(fields).await?,
                "list_script_versions" => self.list_script_versions(fields).await?,
                "delete_script" => self.delete_script(fields, client).await?,
                "search_execution_logs" => self.search_execution_logs(fields, client).await?,
                "get_execution_log" => self.get_execution_log(fields, client).await?,
                other => return Err(OwnFunctionError::unknown(other)),
            };
            Ok(OwnFunctionResult { value, images: Vec::new(), is_failure: false })
        })
    }
}

impl App {
    /// Formats an execution as the result of an own function.
    fn render_execution(
        &self,
        execution: &FinishedExecution,
        client: &Client,
        shape: fn(&FinishedExecution, Option<TextBudget>) -> Value,
    ) -> OwnFunctionResult {
        OwnFunctionResult {
            value: shape(execution, self.budget_of(client)),
            images: execution.images.shown.clone(),
            is_failure: execution.outcome.code().is_some(),
        }
    }

    /// Returns the budget for agents. Code and people get texts in full.
    fn budget_of(&self, client: &Client) -> Option<TextBudget> {
        (client.outer.is_none() && !client.takes_all).then_some(self.budget)
    }
}
