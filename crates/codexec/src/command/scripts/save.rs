use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_functions::OwnFunction;
use serde_json::{Value, json};

use super::super::arguments;
use super::super::own_functions::OwnFunctions;
use super::super::terminal_text::field;
use crate::cli::scripts::SaveArgs;
use crate::parts::Parts;

pub(super) async fn run(parts: Parts, args: SaveArgs) -> anyhow::Result<ExitCode> {
    let language = match (&args.language, &args.file) {
        (Some(name), _) => arguments::parse_language(name)?,
        (None, Some(file)) => arguments::language_of(file).with_context(|| {
            format!("--language: the extension of {} is unknown; name a language", file.display())
        })?,
        (None, None) => anyhow::bail!("--language is missing; name a language"),
    };
    let code = match &args.file {
        Some(file) => arguments::read_code(file)?,
        None => arguments::read_code_from_stdin("with --file or ")?,
    };
    let parameters: Option<Value> = args
        .parameters
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .context("--parameters is not JSON")?;
    let args_json = json!({
        "name": args.name,
        "description": args.description,
        "language": language.name(),
        "code": code,
        "tags": args.tag,
        "packages": args.package,
        "parameters": parameters,
        "source_execution_id": args.source,
        "expose": args.expose,
    });
    let print = |saved: &Value| {
        let (version, path) = (field(saved, "version"), field(saved, "path"));
        writeln!(std::io::stdout(), "version {version} in {path}")?;
        Ok(ExitCode::SUCCESS)
    };
    OwnFunctions::new(parts)?
        .call_and_print(OwnFunction::SaveScript, args_json, args.json, print)
        .await
}
