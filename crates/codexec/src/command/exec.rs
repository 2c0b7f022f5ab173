use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_server::{Budget, Client, ExecuteError, Execution, Wanted, explanation, reply};
use codexec_types::{Asked, Json, Language, Outcome, Refusal};
use serde_json::{Value, json};

use super::given;
use super::own::Refused;
use super::watched::watched;
use crate::cli::Exec;
use crate::parts::Parts;

/// What a terminal gets is not cut: there is nobody's context to save.
const WHOLE: Budget = Budget { chars: usize::MAX, head: 0, tail: 0 };

pub(super) async fn run(mut parts: Parts, args: Exec) -> anyhow::Result<ExitCode> {
    let (as_json, script) = (args.json, args.script.clone());
    let wanted = wanted(args)?;
    parts.allow_working_dir(wanted.working_dir.clone());
    let app = parts.app()?;
    let client = Client::local();
    let running = async {
        match script {
            Some(name) => {
                let ran = app.run_saved(&name, None, wanted, &client).await;
                ran.map_err(|error| Refused::of(&error).exit_code())
            }
            None => app.execute(wanted, &client).await.map_err(|error| Err(in_our_words(error))),
        }
    };
    let executed = watched(&client, running).await;
    app.shutdown().await;
    let execution = match executed {
        Ok(execution) => execution,
        Err(said) => return said,
    };
    let is_fine = matches!(execution.outcome, Outcome::Returned(_));
    if as_json {
        writeln!(std::io::stdout(), "{}", as_value(&execution))?;
    } else {
        let text = reply(&execution, WHOLE).text;
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

/// What the policy calls a field is an option here.
fn in_our_words(error: ExecuteError) -> anyhow::Error {
    match error {
        ExecuteError::Refused(Refusal::Timeout { asked_ms, max_ms }) => {
            anyhow::anyhow!("--timeout: {asked_ms} ms is out of range; it must be 1 to {max_ms}")
        }
        ExecuteError::Refused(Refusal::ToolCalls { asked, max }) => {
            anyhow::anyhow!("--max-tool-calls: {asked} is out of range; it must be 0 to {max}")
        }
        error @ (ExecuteError::WorkingDir(_)
        | ExecuteError::Refused(Refusal::WorkingDir { .. } | Refusal::NoFiles(_))) => {
            let text = format!("{:#}", anyhow::Error::from(error));
            let text = text.strip_prefix("working_dir: ").unwrap_or(&text);
            anyhow::anyhow!("--working-dir: {text}")
        }
        other => other.into(),
    }
}

fn wanted(args: Exec) -> anyhow::Result<Wanted> {
    let language = match (&args.language, &args.file) {
        (Some(name), _) => given::language(name)?,
        (None, Some(file)) => given::language_of(file).unwrap_or(Language::TypeScript),
        (None, None) => Language::TypeScript,
    };
    let code = match (args.code, args.file) {
        _ if args.script.is_some() => String::new(),
        (Some(code), _) if code != "-" => code,
        (None, Some(file)) => given::code_in(&file)?,
        _ => given::code_on_standard_input("as an argument, with --file, or ")?,
    };
    let input =
        args.input.map_or_else(|| Ok(Json::null()), Json::parse).context("--input is not JSON")?;
    let asked = Asked {
        wall: args.timeout,
        tool_calls: args.max_tool_calls,
        allowed_tools: given::patterns(args.allowed_tools),
        allowed_servers: None,
    };
    let working_dir = args.working_dir.as_deref().map(given::working_dir).transpose()?;
    let mut wanted = Wanted::new(language, code);
    wanted.input = input;
    wanted.args = args.args;
    wanted.working_dir = working_dir;
    wanted.asked = asked;
    Ok(wanted)
}

fn as_value(execution: &Execution) -> Value {
    let is_fine = matches!(execution.outcome, Outcome::Returned(_));
    let (what, came_of_it) = match &execution.outcome {
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
            let message = explanation(execution);
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
        what: came_of_it,
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
