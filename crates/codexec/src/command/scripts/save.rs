use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::super::given;
use super::super::own::Own;
use super::super::shown::field;
use crate::cli::scripts::Save;
use crate::parts::Parts;

pub(super) async fn run(parts: Parts, args: Save) -> anyhow::Result<ExitCode> {
    let language = match (&args.language, &args.file) {
        (Some(name), _) => given::language(name)?,
        (None, Some(file)) => given::language_of(file).with_context(|| {
            format!("--language: {} does not tell it; name one", file.display())
        })?,
        (None, None) => anyhow::bail!("--language: it is missing"),
    };
    let code = match &args.file {
        Some(file) => given::code_in(file)?,
        None => given::code_on_standard_input("with --file or ")?,
    };
    let parameters: Option<Value> = args
        .parameters
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .context("--parameters is not JSON")?;
    let asked = json!({
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
    Own::new(parts)?.answer("save_script", asked, args.json, print).await
}
