//! What an execution left behind: files, limits it met, pictures that were too many.

use codexec_types::{Changes, Outcome};

use super::ending::limit_text;
use super::resource_uri;
use crate::Execution;
use crate::plain::plain;

/// The rest is where the last line says.
const MAX_LINES: usize = 20;
/// Files that are not where the code put them are told even when there are many others.
const NOT_WRITTEN_LINES: usize = 5;

/// Empty, or sections with a heading each.
pub(crate) fn text(execution: &Execution) -> String {
    let (changes, uri) = (&execution.changes, resource_uri(execution));
    let mut lines = artifacts("[artifacts]", changes, &uri);
    if let Some(between) = &changes.between_cells {
        lines.extend(artifacts("[artifacts written between the cells]", between, &uri));
    }
    if !execution.limits_met.is_empty() {
        lines.push("[limits]".to_owned());
        for limit in &execution.limits_met {
            lines.push(format!("{}: {}", limit.code(), limit_text(*limit, execution.limits)));
        }
    }
    lines.extend(session(execution));
    let left_out = execution.images.left_out;
    if left_out > 0 {
        lines.push("[images]".to_owned());
        let shown = execution.images.shown.len();
        lines
            .push(format!("{shown} shown, {left_out} left out: too many, too large, or no images"));
    }
    lines.join("\n")
}

/// What became of a session whose code did not run to its end.
fn session(execution: &Execution) -> Vec<String> {
    let was_interrupted = matches!(execution.outcome, Outcome::Stopped(_) | Outcome::Cancelled);
    let said = match execution.session_ended {
        Some(reason) => {
            format!(
                "it has ended ({reason}), and its state is gone; use the name again for a new one"
            )
        }
        None if execution.session.is_some() && was_interrupted => {
            "the code was interrupted, and the session goes on with what it had done".to_owned()
        }
        None => return Vec::new(),
    };
    vec!["[session]".to_owned(), said]
}

/// What is said beside pictures when nothing else is.
pub(super) fn image_count(execution: &Execution) -> String {
    match execution.images.shown.len() {
        1 => "[1 image]".to_owned(),
        many => format!("[{many} images]"),
    }
}

fn artifacts(heading: &str, changes: &Changes, uri: &str) -> Vec<String> {
    let sized = |verb: &'static str| {
        move |file: &codexec_types::Artifact| {
            format!("{verb} {} ({} bytes)", plain(&file.path), grouped(file.bytes))
        }
    };
    let files = changes
        .created
        .iter()
        .map(sized("created"))
        .chain(changes.modified.iter().map(sized("modified")))
        .chain(changes.deleted.iter().map(|file| format!("deleted {}", plain(&file.path))));
    let told = |verb: &'static str| {
        move |file: &codexec_types::NotWritten| {
            format!("{verb} {}: {}", plain(&file.path), plain(&file.reason))
        }
    };
    let not_written = changes
        .conflicts
        .iter()
        .map(told("conflict"))
        .chain(changes.held_back.iter().map(told("held back")));
    let file_count = changes.created.len() + changes.modified.len() + changes.deleted.len();
    let other_count = changes.conflicts.len() + changes.held_back.len();
    if file_count + other_count == 0 && changes.left_out == 0 {
        return Vec::new();
    }
    let for_others = other_count.min(NOT_WRITTEN_LINES.max(MAX_LINES.saturating_sub(file_count)));
    let for_files = file_count.min(MAX_LINES - for_others);
    let mut lines = vec![heading.to_owned()];
    lines.extend(files.take(for_files));
    lines.extend(not_written.take(for_others));
    let untold = (file_count - for_files) + (other_count - for_others);
    let untold = changes.left_out.saturating_add(untold as u64);
    if untold > 0 {
        lines.push(format!("... and {untold} more: {uri}/artifacts"));
    }
    lines
}

/// `12,345`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
