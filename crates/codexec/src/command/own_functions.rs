//! Calls codexec's own functions (sessions, scripts, packages, logs) for the command line.

mod option_names;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use codexec_functions::OwnFunction;
use codexec_server::own::{OwnFunctionError, OwnFunctionResult};
use codexec_server::{App, Client, Connection};
use serde_json::{Map, Value};

use self::option_names::use_option_names;
use super::progress::run_with_progress;
use crate::parts::Parts;

/// Calls own functions on behalf of the user.
pub(super) struct OwnFunctions {
    pub(super) app: App,
    connection: Arc<Connection>,
}

/// The error of an own function, with option names instead of field names.
#[derive(Debug)]
pub(super) struct FunctionError {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl OwnFunctions {
    pub(super) fn new(parts: Parts) -> anyhow::Result<OwnFunctions> {
        let (app, connection) = parts.build_app()?;
        Ok(OwnFunctions { app, connection })
    }

    /// Creates a client for one request of the user.
    pub(super) fn client(&self) -> Client {
        Client::new(Arc::clone(&self.connection))
    }

    /// Calls a function. Null arguments are left out.
    pub(super) async fn call(
        &self,
        function: OwnFunction,
        args: Value,
    ) -> Result<OwnFunctionResult, FunctionError> {
        let client = self.client();
        let args: Map<String, Value> = match args {
            Value::Object(args) => args,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        let args = args.into_iter().filter(|(_, value)| !value.is_null()).collect();
        run_with_progress(&client, self.app.call_own_function(function, args, &client))
            .await
            .map_err(|error| FunctionError::new(&error))
    }

    /// Calls the one function of a command, and prints the result with `show` or as JSON.
    pub(super) async fn call_and_print(
        self,
        function: OwnFunction,
        args: Value,
        as_json: bool,
        show: impl FnOnce(&Value) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let result = self.call(function, args).await;
        self.app.shutdown().await;
        let owned = match result {
            Ok(owned) => owned,
            Err(error) => return error.exit_code(),
        };
        if as_json {
            writeln!(std::io::stdout(), "{}", owned.value)?;
            return Ok(if owned.is_failure { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        show(&owned.value)
    }
}

impl FunctionError {
    pub(super) fn new(error: &OwnFunctionError) -> FunctionError {
        FunctionError { code: error.code(), message: use_option_names(error.message()) }
    }

    /// Prints a negative answer (such as "not found") and returns exit code 1; any other error is
    /// passed on, for exit code 2.
    pub(super) fn exit_code(self) -> anyhow::Result<ExitCode> {
        let is_answer = |code: &str| {
            code.ends_with("_NOT_FOUND")
                || code.ends_with("_UNKNOWN")
                || matches!(code, "MISSING_PACKAGES" | "INSTALL_FAILED")
        };
        if !is_answer(self.code) {
            return Err(anyhow::anyhow!(self.message));
        }
        writeln!(std::io::stderr(), "{}", self.message)?;
        Ok(ExitCode::FAILURE)
    }
}
