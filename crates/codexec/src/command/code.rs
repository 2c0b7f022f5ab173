//! `codexec code`: the same as `mcpproxy code` of MCPProxy.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_compat::{CodeExecutionStatus, McpproxyTools, NamedScript};
use codexec_server::Client;
use codexec_types::Language;
use serde_json::{Map, Value, json};

use super::arguments;
use super::progress::run_with_progress;
use super::terminal_text::table;
use crate::cli::code::{CodeCommand, CodeExecArgs, CodeScriptsCommand};
use crate::parts::Parts;

/// The size limit of an input file; the policy's limit is smaller.
const MAX_INPUT_BYTES: u64 = 64 << 20;

pub(super) async fn run(parts: Parts, args: CodeCommand) -> anyhow::Result<ExitCode> {
    match args {
        CodeCommand::Exec(args) => exec(parts, args).await,
        CodeCommand::Scripts(CodeScriptsCommand::List { json }) => list_scripts(parts, json).await,
    }
}

/// Runs the code. Stdout gets only the JSON, the output of the code goes to stderr.
async fn exec(parts: Parts, args: CodeExecArgs) -> anyhow::Result<ExitCode> {
    let arguments = build_arguments(args)?;
    let mcpproxy = McpproxyTools::new(parts.config.seeds.proxy.clone());
    let (app, connection) = parts.build_app()?;
    let client = Client::new(connection);
    let execution = mcpproxy.code_execution(&app, arguments, &client);
    let executed = run_with_progress(&client, execution).await;
    app.shutdown().await;
    if !executed.output.is_empty() {
        writeln!(std::io::stderr(), "{}", executed.output)?;
    }
    writeln!(std::io::stdout(), "{}", executed.text)?;
    Ok(match executed.came {
        CodeExecutionStatus::Fine => ExitCode::SUCCESS,
        CodeExecutionStatus::Failed => ExitCode::FAILURE,
        CodeExecutionStatus::Refused => ExitCode::from(2),
    })
}

fn build_arguments(args: CodeExecArgs) -> anyhow::Result<Map<String, Value>> {
    let file = args.file.as_deref();
    let language = args.language.or_else(|| file.and_then(language_of));
    let code = match (args.code, file) {
        (None, Some(file)) => Some(arguments::read_code(file)?),
        (code, _) => code,
    };
    let input = match (args.input, &args.input_file) {
        (Some(text), _) => Some((text, "--input".to_owned())),
        (None, Some(file)) => Some((read_input(file)?, format!("--input-file {}", file.display()))),
        (None, None) => None,
    };
    let input = input.map(|(text, option)| parse_object(&text).context(option)).transpose()?;
    let given = [
        ("code", code.map(Value::String)),
        ("script", args.script.map(Value::String)),
        ("language", language.map(Value::String)),
        ("input", input),
        (
            "options",
            Some(json!({
                "timeout_ms": args.timeout,
                "max_tool_calls": args.max_tool_calls,
                "allowed_servers": arguments::drop_empty(Some(args.allowed_servers)),
            })),
        ),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(given.collect())
}

/// Returns the language of the file's extension, if it is JavaScript or TypeScript.
fn language_of(file: &Path) -> Option<String> {
    match arguments::language_of(file)? {
        language @ (Language::JavaScript | Language::TypeScript) => {
            Some(language.name().to_owned())
        }
        Language::Python | Language::Bash | Language::Node => None,
    }
}

fn read_input(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let about = std::fs::metadata(file).with_context(|| format!("--input-file: {shown}"))?;
    anyhow::ensure!(
        about.len() <= MAX_INPUT_BYTES,
        "--input-file: {shown} has {} bytes; at most {MAX_INPUT_BYTES} are read",
        about.len()
    );
    std::fs::read_to_string(file).with_context(|| format!("--input-file: {shown}"))
}

fn parse_object(text: &str) -> anyhow::Result<Value> {
    let value: Value = serde_json::from_str(text).context("not JSON")?;
    anyhow::ensure!(value.is_object(), "must be a JSON object");
    Ok(value)
}

async fn list_scripts(parts: Parts, as_json: bool) -> anyhow::Result<ExitCode> {
    let mcpproxy = McpproxyTools::new(parts.config.seeds.proxy.clone());
    let (app, connection) = parts.build_app()?;
    let scripts = mcpproxy.code_scripts(&app, &connection).await;
    app.shutdown().await;
    if as_json {
        let scripts: Vec<Value> = scripts.iter().map(to_json).collect();
        writeln!(std::io::stdout(), "{}", json!({"scripts": scripts}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if scripts.is_empty() {
        writeln!(std::io::stderr(), "no scripts; save one with `codexec scripts save`")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |script: &NamedScript| {
        vec![
            script.name.clone(),
            script.language.name().to_owned(),
            script_source(script).to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = scripts.iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["NAME", "LANGUAGE", "WHERE"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn to_json(script: &NamedScript) -> Value {
    json!({"name": script.name, "language": script.language.name(), "where": script_source(script)})
}

fn script_source(script: &NamedScript) -> &'static str {
    if script.is_file { "file" } else { "library" }
}
