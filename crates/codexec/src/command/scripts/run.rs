use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::super::given;
use super::super::own::Own;
use super::super::ran::print;
use crate::cli::scripts::Run;
use crate::parts::Parts;

pub(super) async fn run(mut parts: Parts, args: Run) -> anyhow::Result<ExitCode> {
    let input: Option<Value> = args
        .input
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .context("--input is not JSON")?;
    let working_dir = args.working_dir.as_deref().map(given::working_dir).transpose()?;
    parts.allow_working_dir(working_dir.clone());
    let asked = json!({
        "name": args.name,
        "version": args.version,
        "args": args.args,
        "input": input,
        "timeout_ms": given::milliseconds(args.timeout),
        "working_dir": working_dir,
        "allowed_tools": given::patterns(args.allowed_tools),
    });
    Own::new(parts)?.answer("run_script", asked, args.json, print).await
}
