use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_server::{
    Client, ExecuteError, ExecutionRequest, FinishedExecution, TextBudget, explain_outcome,
    render_reply,
};
use codexec_types::{Json, Language, Outcome, PolicyRefusal, RequestedLimits};
use serde_json::{Value, json};

use super::arguments;
use super::own_functions::FunctionError;
use super::progress::run_with_progress;
use crate::cli::ExecArgs;
use crate::parts::Parts;

pub(super) async fn run(mut parts: Parts, args: ExecArgs) -> anyhow::Result<ExitCode> {
    let (as_json, script) = (args.json, args.script.clone());
    let request = build_request(args)?;
    parts.allow_working_dir(request.working_dir.clone());
    let (app, connection) = parts.build_app()?;
    let client = Client::new(connection);
    let running = async {
        match script {
            Some(name) => {
                let ran = app.run_saved(&name, None, request, &client).await;
                ran.map_err(|error| FunctionError::new(&error).exit_code())
            }
            None => {
                app.execute(request, &client).await.map_err(|error| Err(use_option_names(error)))
            }
        }
    };
    let executed = run_with_progress(&client, running).await;
    app.shutdown().await;
    let execution = match executed {
        Ok(execution) => execution,
        Err(exit) => return exit,
    };
    let is_fine = matches!(execution.outcome, Outcome::Returned(_));
    if as_json {
        writeln!(std::io::stdout(), "{}", to_json(&execution))?;
    } else {
        let text = render_reply(&execution, TextBudget::UNLIMITED).text;
        if is_fine {
            writeln!(std::io::stdout(), "{text}")?;
        } else {
            writeln!(std::io::stderr(), "{text}")?;
        }
        for file in &execution.images.files {
            writeln!(std::io::stdout(), "{}", file.display())?;
        }
    }
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
        error @ (ExecuteError::WorkingDir(_)
        | ExecuteError::Refused(
            PolicyRefusal::WorkingDir { .. } | PolicyRefusal::NoFiles(_),
        )) => {
            let text = format!("{:#}", anyhow::Error::from(error));
            let text = text.strip_prefix("working_dir: ").unwrap_or(&text);
            anyhow::anyhow!("--working-dir: {text}")
        }
        other => other.into(),
    }
}

fn build_request(args: ExecArgs) -> anyhow::Result<ExecutionRequest> {
    let language = match (&args.language, &args.file) {
        (Some(name), _) => arguments::parse_language(name)?,
        (None, Some(file)) => arguments::language_of(file).unwrap_or(Language::TypeScript),
        (None, None) => Language::TypeScript,
    };
    let code = match (args.code, args.file) {
        _ if args.script.is_some() => String::new(),
        (Some(code), _) if code != "-" => code,
        (None, Some(file)) => arguments::read_code(&file)?,
        _ => arguments::read_code_from_stdin("as an argument, with --file, or ")?,
    };
    let input =
        args.input.map_or_else(|| Ok(Json::null()), Json::parse).context("--input is not JSON")?;
    let asked = RequestedLimits {
        wall: args.timeout,
        tool_calls: args.max_tool_calls,
        allowed_tools: arguments::drop_empty(args.allowed_tools),
        allowed_servers: None,
    };
    let working_dir = args.working_dir.as_deref().map(arguments::absolute_dir).transpose()?;
    let mut request = ExecutionRequest::new(language, code);
    request.input = input;
    request.args = args.args;
    request.working_dir = working_dir;
    request.asked = asked;
    request.words.tools = "--allowed-tools";
    request.words.directory = Some("--working-dir");
    Ok(request)
}

fn to_json(execution: &FinishedExecution) -> Value {
    let is_fine = matches!(execution.outcome, Outcome::Returned(_));
    let (what, outcome) = match &execution.outcome {
        Outcome::Returned(json) => {
            let deep = |_| Value::String(json.text().to_owned());
            ("value", json.to_value().unwrap_or_else(deep))
        }
        Outcome::Threw(thrown) => {
            let error = json!({
                "code": thrown.code.name(),
                "message": thrown.message,
                "line": thrown.at.map(|at| at.line),
                "column": thrown.at.map(|at| at.column),
                "stack": thrown.stack,
            });
            ("error", error)
        }
        other @ (Outcome::Exited { .. }
        | Outcome::Stopped(_)
        | Outcome::Crashed(_)
        | Outcome::Cancelled) => {
            let message = explain_outcome(execution);
            ("error", json!({"code": other.code(), "message": message}))
        }
    };
    let exit_code = match &execution.outcome {
        Outcome::Exited { code } => Some(*code),
        Outcome::Returned(_)
        | Outcome::Threw(_)
        | Outcome::Stopped(_)
        | Outcome::Crashed(_)
        | Outcome::Cancelled => None,
    };
    json!({
        "ok": is_fine,
        "id": execution.id.as_str(),
        "output": execution.output.text(),
        what: outcome,
        "exit_code": exit_code,
        "artifacts": execution.changes,
        "images": execution.images.count(),
        "image_files": execution.images.files,
        "limits_met": execution.limits_met.iter().map(|limit| limit.code()).collect::<Vec<_>>(),
        "tool_calls": execution.usage.tool_calls,
        "duration_ms": execution.duration.as_secs_f64() * 1e3,
        "cpu_ms": execution.usage.cpu.as_secs_f64() * 1e3,
        "peak_memory_bytes": execution.usage.peak_memory_bytes,
    })
}
