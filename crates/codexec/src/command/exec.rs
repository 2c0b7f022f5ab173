mod live_output;
mod request;
mod result_text;

use std::io::Write as _;
use std::process::ExitCode;

use codexec_server::own::OwnFunctionError;
use codexec_server::{App, Client, ExecuteError, ExecutionRequest, FinishedExecution, LiveStreams};
use codexec_types::{Outcome, PolicyRefusal};
use serde_json::json;
use tokio::sync::mpsc;

use self::live_output::{LiveOutput, print_live};
use super::own_functions::FunctionError;
use super::progress::run_with_progress;
use crate::cli::ExecArgs;
use crate::parts::Parts;

/// Why the code did not run.
enum NotRun {
    Script(OwnFunctionError),
    Request(ExecuteError),
}

pub(super) async fn run(mut parts: Parts, args: ExecArgs) -> anyhow::Result<ExitCode> {
    let (as_json, script) = (args.json, args.script.clone());
    let (request, stdin) = request::build(args)?;
    parts.allow_working_dir(request.working_dir.clone());
    let (app, connection) = parts.build_app()?;
    let mut client = Client::new(connection);
    #[expect(clippy::disallowed_methods, reason = "bounded, see `LiveStreams::new`")]
    let (sender, pieces) = mpsc::unbounded_channel();
    client.streams = LiveStreams::new(stdin.start(), sender);
    let cancel = client.cancel.clone();
    let running = async move {
        let executed = run_with_progress(&client, execute(&app, script, request, &client)).await;
        app.shutdown().await;
        executed
    };
    let (executed, printed) = if as_json {
        // Nobody receives the pieces; the JSON has the whole output.
        drop(pieces);
        (running.await, Ok(LiveOutput::default()))
    } else {
        tokio::join!(running, print_live(pieces, cancel))
    };
    let live = printed?;
    let execution = match executed {
        Ok(execution) => execution,
        Err(not_run) => return not_run.report(as_json),
    };
    if as_json {
        writeln!(std::io::stdout(), "{}", result_text::to_json(&execution))?;
    } else {
        result_text::print(&execution, live)?;
    }
    Ok(exit_code(&execution))
}

async fn execute(
    app: &App,
    script: Option<String>,
    request: ExecutionRequest,
    client: &Client,
) -> Result<FinishedExecution, NotRun> {
    match script {
        Some(name) => app.run_saved(&name, None, request, client).await.map_err(NotRun::Script),
        None => app.execute(request, client).await.map_err(NotRun::Request),
    }
}

/// Returns the program's own exit code, or 1 if the code failed in another way.
fn exit_code(execution: &FinishedExecution) -> ExitCode {
    match &execution.outcome {
        Outcome::Returned(_) => ExitCode::SUCCESS,
        Outcome::Exited { code } => u8::try_from(*code).map_or(ExitCode::FAILURE, ExitCode::from),
        Outcome::Threw(_) | Outcome::Stopped(_) | Outcome::Crashed(_) | Outcome::Cancelled => {
            ExitCode::FAILURE
        }
    }
}

impl NotRun {
    /// Prints JSON if wanted, and passes the error on.
    fn report(self, as_json: bool) -> anyhow::Result<ExitCode> {
        let (code, message, error) = match self {
            NotRun::Script(error) => {
                let told = FunctionError::new(&error);
                (told.code, told.message.clone(), Ok(told))
            }
            NotRun::Request(error) => {
                let code = error.code();
                let error = use_option_names(error);
                (code, format!("{error:#}"), Err(error))
            }
        };
        if as_json {
            let error = json!({"code": code, "message": message});
            let report = json!({"ok": false, "outcome": "not_run", "error": error});
            writeln!(std::io::stdout(), "{report}")?;
        }
        match error {
            Ok(told) => told.exit_code(),
            Err(error) => Err(error),
        }
    }
}

/// Replaces field names of the policy's errors by command line options.
fn use_option_names(error: ExecuteError) -> anyhow::Error {
    match error {
        ExecuteError::Refused(PolicyRefusal::Timeout { asked_ms, max_ms }) => {
            anyhow::anyhow!("--timeout: {asked_ms} ms is out of range; it must be 1 to {max_ms}")
        }
        ExecuteError::Refused(PolicyRefusal::ToolCalls { asked, max }) => {
            anyhow::anyhow!("--max-tool-calls: {asked} is out of range; it must be 0 to {max}")
        }
        other => {
            let text = format!("{:#}", anyhow::Error::from(other));
            anyhow::anyhow!(replace_field_names(&text))
        }
    }
}

/// Replaces the field names of `execute_code` in a message of ours by command line options.
fn replace_field_names(text: &str) -> String {
    let options = [
        ("working_dir", "--working-dir"),
        ("allowed_tools", "--allowed-tools"),
        ("timeout_ms", "--timeout"),
        ("max_tool_calls", "--max-tool-calls"),
    ];
    options.iter().fold(text.to_owned(), |text, (field, option)| {
        text.replace(&format!("`{field}`"), option).replace(field, option)
    })
}
