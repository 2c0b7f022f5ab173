//! `codexec logs --follow`: shows executions as they end.

use std::collections::HashSet;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use codexec_functions::OwnFunction;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::super::own_functions::OwnFunctions;
use super::super::terminal_text::{field, items};
use super::{print_rows, row, search_arguments};
use crate::cli::logs::SearchArgs;

/// Other processes write the records, so this polls.
const INTERVAL: Duration = Duration::from_millis(500);
const PAGE: u64 = 100;

pub(super) async fn run(own: &OwnFunctions, args: &SearchArgs) -> anyhow::Result<ExitCode> {
    let followed = tokio::select! {
        followed = follow(own, args) => followed,
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
    };
    own.app.shutdown().await;
    followed
}

async fn follow(own: &OwnFunctions, args: &SearchArgs) -> anyhow::Result<ExitCode> {
    let mut shown: HashSet<String> = HashSet::new();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_first = true;
    loop {
        ticks.tick().await;
        let mut arguments = search_arguments(args);
        if !is_first && let Some(fields) = arguments.as_object_mut() {
            fields.insert("limit".to_owned(), json!(PAGE));
        }
        let found = match own.call(OwnFunction::SearchExecutionLogs, arguments).await {
            Ok(owned) => owned.value,
            Err(error) => return error.exit_code(),
        };
        // Older executions than those of the first page have ended before.
        let results = items(&found, "results");
        let mut new: Vec<&Value> = results
            .iter()
            .filter(|log| field(log, "status") != "running")
            .filter(|log| shown.insert(field(log, "execution_id")))
            .collect();
        new.reverse();
        print(&new, args, is_first)?;
        if is_first {
            skip_older(own, args, &mut shown).await;
        }
        is_first = false;
    }
}

/// Marks the executions behind the first page as shown.
async fn skip_older(own: &OwnFunctions, args: &SearchArgs, shown: &mut HashSet<String>) {
    let mut arguments = search_arguments(args);
    if let Some(fields) = arguments.as_object_mut() {
        fields.insert("limit".to_owned(), json!(PAGE));
        fields.insert("offset".to_owned(), json!(args.limit));
    }
    if let Ok(owned) = own.call(OwnFunction::SearchExecutionLogs, arguments).await {
        let old = items(&owned.value, "results").iter();
        let old = old.filter(|log| field(log, "status") != "running");
        shown.extend(old.map(|log| field(log, "execution_id")));
    }
}

fn print(new: &[&Value], args: &SearchArgs, is_first: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if args.json {
        for log in new {
            writeln!(out, "{log}")?;
        }
    } else {
        let rows: Vec<Vec<String>> = new.iter().map(|log| row(log)).collect();
        print_rows(&rows, is_first)?;
    }
    out.flush()?;
    Ok(())
}
