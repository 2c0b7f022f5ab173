use std::process::ExitCode;

use anyhow::Context as _;
use codexec_functions::OwnFunction;
use serde_json::{Value, json};

use super::super::arguments;
use super::super::execution_output::print;
use super::super::own_functions::OwnFunctions;
use crate::cli::scripts::RunArgs;
use crate::parts::Parts;

pub(super) async fn run(mut parts: Parts, args: RunArgs) -> anyhow::Result<ExitCode> {
    let input: Option<Value> = args
        .input
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .context("--input is not JSON")?;
    let working_dir = args.working_dir.as_deref().map(arguments::absolute_dir).transpose()?;
    parts.allow_working_dir(working_dir.clone());
    let args_json = json!({
        "name": args.name,
        "version": args.version,
        "args": args.args,
        "input": input,
        "timeout_ms": arguments::milliseconds(args.timeout),
        "working_dir": working_dir,
        "allowed_tools": arguments::drop_empty(args.allowed_tools),
    });
    OwnFunctions::new(parts)?
        .call_and_print(OwnFunction::RunScript, args_json, args.json, print)
        .await
}
