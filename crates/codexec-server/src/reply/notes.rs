//! Notes about an execution: its files, limits that it reached, and what was left out: tools of
//! servers that did not answer, and images.

use codexec_types::{FileChanges, Outcome};

use super::ending::describe_limit;
use super::resource_uri;
use crate::FinishedExecution;
use crate::escaped_text::escape_name;

/// The last line says where the rest is.
const MAX_LINES: usize = 20;
/// Minimum number of lines for files that were not written, even if there are many others.
const NOT_WRITTEN_LINES: usize = 5;

/// Formats the notes: empty, or sections with a heading each.
pub fn render(execution: &FinishedExecution) -> String {
    let (changes, uri) = (&execution.changes, resource_uri(execution));
    let mut lines = artifacts("[artifacts]", changes);
    if let Some(between) = &changes.between_cells {
        lines.extend(artifacts("[artifacts written between the cells]", between));
    }
    if let Some(nested) = &changes.nested {
        lines.extend(artifacts("[artifacts of code that this code ran]", nested));
    }
    // The id is worth its tokens where there is something to look up.
    if let Some(heading) = lines.first_mut() {
        heading.push_str(&format!(" {uri}/artifacts"));
    }
    if !execution.limits_met.is_empty() {
        lines.push("[limits]".to_owned());
        for limit in &execution.limits_met {
            lines.push(format!("{}: {}", limit.code(), describe_limit(*limit, execution.limits)));
        }
    }
    lines.extend(foreign_group(execution));
    if let (Outcome::Returned(_), Some(hint)) = (&execution.outcome, &execution.hint) {
        lines.extend(["[hint]".to_owned(), hint.clone()]);
    }
    lines.extend(session(execution));
    if !execution.discovery_notes.is_empty() {
        lines.push("[discovery]".to_owned());
        lines.extend(execution.discovery_notes.iter().cloned());
    }
    let left_out = execution.images.left_out;
    if left_out > 0 {
        lines.push("[images]".to_owned());
        let shown = execution.images.shown.len();
        lines
            .push(format!("{shown} shown, {left_out} left out: too many, too large, or no images"));
    }
    lines.join("\n")
}

/// Explains the error of a file that overlayfs cannot copy into the code's layer: languages report
/// only the kernel's text for `EOVERFLOW`.
fn foreign_group(execution: &FinishedExecution) -> Vec<String> {
    // Without the first letter, which is not the same in all languages.
    const ERROR: &str = "alue too large for defined data type";
    let thrown = match &execution.outcome {
        Outcome::Threw(thrown) => thrown.message.as_str(),
        _ => "",
    };
    if !thrown.contains(ERROR) && !execution.output.text().contains(ERROR) {
        return Vec::new();
    }
    let said = "\"value too large\" for a file of the working directory means that the file or its \
                folder has another group than the directory's owner, and cannot be changed; change \
                its group outside";
    vec!["[files]".to_owned(), said.to_owned()]
}

/// Tells the state of a session that is not the client's earlier one of this name, or whose code did
/// not run to its end.
fn session(execution: &FinishedExecution) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(reason) = &execution.session_replaces {
        lines.push(format!(
            "this is a new session: the earlier one has ended ({reason}), and its state is gone"
        ));
    }
    lines.extend(session_state(execution));
    if !lines.is_empty() {
        lines.insert(0, "[session]".to_owned());
    }
    lines
}

fn session_state(execution: &FinishedExecution) -> Option<String> {
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
        None => return None,
    };
    Some(said)
}

/// Returns the text for a reply that has nothing but images.
pub(super) fn image_count(execution: &FinishedExecution) -> String {
    match execution.images.shown.len() {
        1 => "[1 image]".to_owned(),
        many => format!("[{many} images]"),
    }
}

fn artifacts(heading: &str, changes: &FileChanges) -> Vec<String> {
    let sized = |verb: &'static str| {
        move |file: &codexec_types::Artifact| {
            format!("{verb} {} ({} bytes)", escape_name(&file.path), group_digits(file.bytes))
        }
    };
    let files = changes
        .created
        .iter()
        .map(sized("created"))
        .chain(changes.modified.iter().map(sized("modified")))
        .chain(changes.deleted.iter().map(|file| format!("deleted {}", escape_name(&file.path))));
    let described = |verb: &'static str| {
        move |file: &codexec_types::NotWritten| {
            format!("{verb} {}: {}", escape_name(&file.path), escape_name(&file.reason))
        }
    };
    let not_written = changes
        .conflicts
        .iter()
        .map(described("conflict"))
        .chain(changes.held_back.iter().map(described("held back")));
    let file_count = changes.created.len() + changes.modified.len() + changes.deleted.len();
    let other_count = changes.conflicts.len() + changes.held_back.len();
    if file_count + other_count == 0 && changes.left_out == 0 {
        return Vec::new();
    }
    let not_written_lines =
        other_count.min(NOT_WRITTEN_LINES.max(MAX_LINES.saturating_sub(file_count)));
    let file_lines = file_count.min(MAX_LINES - not_written_lines);
    let mut lines = vec![heading.to_owned()];
    lines.extend(files.take(file_lines));
    lines.extend(not_written.take(not_written_lines));
    let omitted = (file_count - file_lines) + (other_count - not_written_lines);
    let omitted = changes.left_out.saturating_add(omitted as u64);
    if omitted > 0 {
        lines.push(format!("... and {omitted} more"));
    }
    lines
}

/// Formats a number like `12,345`.
fn group_digits(number: u64) -> String {
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
