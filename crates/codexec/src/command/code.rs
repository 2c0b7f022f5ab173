//! `codexec code`: what `mcpproxy code` is there.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_server::{Came, Client, NamedScript};
use codexec_types::Language;
use serde_json::{Map, Value, json};

use super::given;
use super::shown::table;
use super::watched::watched;
use crate::cli::code::{Code, Exec, Scripts};
use crate::parts::Parts;

/// The longest input file that is read; what the policy allows is less.
const MAX_INPUT_BYTES: u64 = 64 << 20;

pub(super) async fn run(parts: Parts, args: Code) -> anyhow::Result<ExitCode> {
    match args {
        Code::Exec(args) => exec(parts, args).await,
        Code::Scripts(Scripts::List { json }) => list(parts, json).await,
    }
}

/// Standard output has the JSON alone, whatever comes of it; what the code prints goes beside it.
async fn exec(parts: Parts, args: Exec) -> anyhow::Result<ExitCode> {
    let arguments = arguments(args)?;
    let app = parts.app()?;
    let mut client = Client::local();
    client.takes_all = true;
    let executed = watched(&client, app.code_execution(arguments, &client)).await;
    app.shutdown().await;
    if !executed.output.is_empty() {
        writeln!(std::io::stderr(), "{}", executed.output)?;
    }
    writeln!(std::io::stdout(), "{}", executed.text)?;
    Ok(match executed.came {
        Came::Fine => ExitCode::SUCCESS,
        Came::Failed => ExitCode::FAILURE,
        Came::Refused => ExitCode::from(2),
    })
}

fn arguments(args: Exec) -> anyhow::Result<Map<String, Value>> {
    let file = args.file.as_deref();
    let language = args.language.or_else(|| file.and_then(language_of));
    let code = match (args.code, file) {
        (None, Some(file)) => Some(given::code_in(file)?),
        (code, _) => code,
    };
    let input = match (args.input, &args.input_file) {
        (Some(text), _) => Some((text, "--input".to_owned())),
        (None, Some(file)) => Some((input_in(file)?, format!("--input-file {}", file.display()))),
        (None, None) => None,
    };
    let input = input.map(|(text, option)| object(&text).context(option)).transpose()?;
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
                "allowed_servers": given::patterns(Some(args.allowed_servers)),
            })),
        ),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(given.collect())
}

/// As the file's name ends, where that is one of the two.
fn language_of(file: &Path) -> Option<String> {
    match given::language_of(file)? {
        language @ (Language::JavaScript | Language::TypeScript) => {
            Some(language.name().to_owned())
        }
        Language::Python | Language::Bash | Language::Node => None,
    }
}

fn input_in(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let about = std::fs::metadata(file).with_context(|| format!("--input-file: {shown}"))?;
    anyhow::ensure!(
        about.len() <= MAX_INPUT_BYTES,
        "--input-file: {shown} has {} bytes; at most {MAX_INPUT_BYTES} are read",
        about.len()
    );
    std::fs::read_to_string(file).with_context(|| format!("--input-file: {shown}"))
}

fn object(text: &str) -> anyhow::Result<Value> {
    let value: Value = serde_json::from_str(text).context("it is not JSON")?;
    anyhow::ensure!(value.is_object(), "it must be a JSON object");
    Ok(value)
}

async fn list(parts: Parts, as_json: bool) -> anyhow::Result<ExitCode> {
    let app = parts.app()?;
    let scripts = app.code_scripts().await;
    app.shutdown().await;
    if as_json {
        let scripts: Vec<Value> = scripts.iter().map(as_value).collect();
        writeln!(std::io::stdout(), "{}", json!({"scripts": scripts}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if scripts.is_empty() {
        writeln!(std::io::stderr(), "none is stored; keep one with `codexec scripts save`")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |script: &NamedScript| {
        vec![script.name.clone(), script.language.name().to_owned(), place(script).to_owned()]
    };
    let rows: Vec<Vec<String>> = scripts.iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["NAME", "LANGUAGE", "WHERE"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn as_value(script: &NamedScript) -> Value {
    json!({"name": script.name, "language": script.language.name(), "where": place(script)})
}

fn place(script: &NamedScript) -> &'static str {
    if script.is_file { "file" } else { "library" }
}
