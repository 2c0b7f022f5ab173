use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codexec_server::{
    Budget, Client, ExecuteError, Execution, Progress, Wanted, explanation, reply,
};
use codexec_types::{Asked, Json, Language, Outcome, Refusal};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::cli::Exec;
use crate::parts::Parts;

/// What a terminal gets is not cut: there is nobody's context to save.
const WHOLE: Budget = Budget { chars: usize::MAX, head: 0, tail: 0 };

pub(super) async fn run(mut parts: Parts, args: Exec) -> anyhow::Result<ExitCode> {
    let as_json = args.json;
    let wanted = wanted(args)?;
    // The user's own word; what is forbidden stays so.
    parts.config.policy.files.allowed.extend(wanted.working_dir.clone());
    let app = parts.app()?;
    let client = Client::local();
    let watched = client.progress.subscribe();
    let executed = {
        let running = app.execute(wanted, &client);
        tokio::pin!(running);
        let shown = show(watched);
        tokio::pin!(shown);
        loop {
            tokio::select! {
                executed = &mut running => break executed,
                _ = tokio::signal::ctrl_c() => client.cancel.cancel(),
                never = &mut shown => match never {},
            }
        }
    };
    app.shutdown().await;
    let execution = executed.map_err(in_our_words)?;
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
        (Some(name), _) => Language::parse(name).with_context(|| {
            let names = Language::ALL.map(Language::name).join(", ");
            let short = Language::ALL.map(Language::short).join(", ");
            format!("--language {name:?} is not known; use {names}, or {short}")
        })?,
        (None, Some(file)) => file
            .extension()
            .and_then(|extension| Language::parse(extension.to_str()?))
            .unwrap_or(Language::TypeScript),
        (None, None) => Language::TypeScript,
    };
    let code = match (args.code, args.file) {
        (Some(code), _) if code != "-" => code,
        (None, Some(file)) => {
            let shown = file.display();
            let bytes = std::fs::read(&file).with_context(|| format!("--file: {shown}"))?;
            let not_text = |_| anyhow::anyhow!("--file: {shown} is not UTF-8; save it as UTF-8");
            String::from_utf8(bytes).map_err(not_text)?
        }
        _ => standard_input()?,
    };
    let input =
        args.input.map_or_else(|| Ok(Json::null()), Json::parse).context("--input is not JSON")?;
    // `--allowed-tools ""` is how a shell says: none.
    let allowed_tools = args
        .allowed_tools
        .map(|list| list.into_iter().filter(|pattern| !pattern.is_empty()).collect());
    let asked = Asked {
        wall: args.timeout,
        tool_calls: args.max_tool_calls,
        allowed_tools,
        allowed_servers: None,
    };
    let working_dir = args.working_dir.as_deref().map(whole_path).transpose()?;
    let mut wanted = Wanted::new(language, code);
    wanted.input = input;
    wanted.working_dir = working_dir;
    wanted.asked = asked;
    Ok(wanted)
}

/// A person may write it from where they are.
fn whole_path(dir: &Path) -> anyhow::Result<PathBuf> {
    let whole = std::path::absolute(dir).with_context(|| dir.display().to_string());
    let whole = whole.context("--working-dir")?;
    match whole.canonicalize() {
        Ok(real) => Ok(real),
        // What is not there has no `..` to be told of.
        Err(error) if whole.components().any(|part| part == Component::ParentDir) => {
            Err(error).with_context(|| format!("--working-dir: {}", dir.display()))
        }
        Err(_) => Ok(whole),
    }
}

fn standard_input() -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        bail!("no code: give it as an argument, with --file, or on standard input");
    }
    let mut code = String::new();
    std::io::stdin().read_to_string(&mut code).context("standard input is not UTF-8")?;
    Ok(code)
}

/// What the guest says about its progress, for whoever sits at a terminal.
async fn show(mut progress: watch::Receiver<Progress>) -> std::convert::Infallible {
    while progress.changed().await.is_ok() {
        let message = progress.borrow_and_update().message.clone();
        if let Some(message) = message
            && std::io::stderr().is_terminal()
        {
            let _ = writeln!(std::io::stderr(), "{message}");
        }
    }
    std::future::pending().await
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
