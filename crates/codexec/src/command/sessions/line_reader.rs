//! Reads the lines of a session: with an editor and a history at a terminal, as they are otherwise.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use codexec_files::private_files;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tokio::sync::mpsc;

/// The most lines that the history keeps.
const HISTORY_LINES: usize = 1_000;

/// A line of the input.
#[derive(Debug)]
pub(super) enum InputLine {
    Text(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    End,
}

/// Reads stdin in a thread: a terminal cannot be read asynchronously.
pub(super) struct LineReader {
    prompts: mpsc::Sender<&'static str>,
    lines: mpsc::Receiver<anyhow::Result<InputLine>>,
}

impl LineReader {
    pub(super) fn start(is_typed: bool, history: PathBuf) -> LineReader {
        let (prompts, wanted) = mpsc::channel(1);
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || match is_typed {
            true => edit_lines(wanted, &sender, &history),
            false => copy_lines(wanted, &sender),
        });
        LineReader { prompts, lines }
    }

    /// Returns the next line. `is_continued` chooses the prompt.
    pub(super) async fn next(&mut self, is_continued: bool) -> anyhow::Result<InputLine> {
        let prompt = if is_continued { "... " } else { ">>> " };
        if self.prompts.send(prompt).await.is_err() {
            return Ok(InputLine::End);
        }
        self.lines.recv().await.unwrap_or(Ok(InputLine::End))
    }
}

/// Reads lines only on demand, so that the terminal belongs to the session's output meanwhile.
fn edit_lines(
    mut wanted: mpsc::Receiver<&'static str>,
    lines: &mpsc::Sender<anyhow::Result<InputLine>>,
    history: &Path,
) {
    let mut editor = match open_editor(history) {
        Ok(editor) => editor,
        Err(error) => {
            let _ = lines.blocking_send(Err(error));
            return;
        }
    };
    while let Some(prompt) = wanted.blocking_recv() {
        let line = match editor.readline(prompt) {
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                save_history(&mut editor, history);
                Ok(InputLine::Text(line))
            }
            Err(ReadlineError::Interrupted) => Ok(InputLine::Interrupted),
            Err(ReadlineError::Eof) => Ok(InputLine::End),
            Err(error) => Err(anyhow::Error::from(error).context("cannot read the terminal")),
        };
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

fn open_editor(history: &Path) -> anyhow::Result<DefaultEditor> {
    let config = rustyline::Config::builder()
        .max_history_size(HISTORY_LINES)
        .and_then(|config| config.history_ignore_dups(true))
        .context("cannot use the terminal")?
        .build();
    let mut editor = DefaultEditor::with_config(config).context("cannot use the terminal")?;
    // There is no history before the first session.
    let _ = editor.load_history(history);
    Ok(editor)
}

/// Saves the history. A session works without one, so errors are only logged.
fn save_history(editor: &mut DefaultEditor, history: &Path) {
    // The editor's own format, in which a backslash is escaped.
    let lines: Vec<String> =
        editor.history().iter().map(|line| line.replace('\\', "\\\\")).collect();
    let text = format!("#V2\n{}\n", lines.join("\n"));
    if let Err(error) = private_files::replace(history, text.as_bytes()) {
        tracing::debug!(%error, "the history was not saved");
    }
}

fn copy_lines(
    mut wanted: mpsc::Receiver<&'static str>,
    lines: &mpsc::Sender<anyhow::Result<InputLine>>,
) {
    let mut input = std::io::stdin().lock().lines();
    while wanted.blocking_recv().is_some() {
        let line = match input.next() {
            Some(line) => line.map(InputLine::Text).context("standard input is not UTF-8"),
            None => Ok(InputLine::End),
        };
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}
