use std::time::Duration;

use codexec_exec::Usage;
use codexec_types::{
    Artifact, Crash, ExecutionId, FileChanges, ImageType, Json, Limit, Limits, NotWritten, Outcome,
    Position, Thrown, ThrownCode,
};

use super::*;
use crate::Images;

fn written(text: &str) -> codexec_types::GuestOutput {
    codexec_types::GuestOutput::new(text.to_owned(), Vec::new())
}

fn execution(output: &str, outcome: Outcome) -> FinishedExecution {
    FinishedExecution {
        id: ExecutionId::from_bits(1),
        outcome,
        limits: Limits::DEFAULT,
        output: written(output),
        language: codexec_types::Language::TypeScript,
        session: None,
        session_ended: None,
        session_replaces: None,
        discovery_notes: Vec::new(),
        images: Images::default(),
        changes: FileChanges::default(),
        limits_met: Vec::new(),
        usage: Usage::default(),
        duration: Duration::ZERO,
        working_dir: None,
        hint: None,
    }
}

#[track_caller]
fn check(output: &str, outcome: Outcome, expected: &str) {
    let budget = TextBudget { chars: 100, head: 5, tail: 5 };
    assert_eq!(render_reply(&execution(output, outcome), budget).text, expected);
}

#[track_caller]
fn check_whole(execution: &FinishedExecution, expected: &str) {
    assert_eq!(render_reply(execution, TextBudget::DEFAULT).text, expected);
}

fn file(path: &str, bytes: u64) -> Artifact {
    Artifact { path: path.to_owned(), bytes }
}

fn returned(json: &str) -> Outcome {
    Outcome::Returned(Json::parse(json.to_owned()).expect("json"))
}

#[test]
fn values_and_output() {
    check("", returned("42"), "42");
    check("", returned("\"a\\nb\""), "a\nb");
    check("", returned("null"), "null");
    check("hi\n", returned("null"), "hi");
    check("hi\n", returned("[1]"), "hi\n[result]\n[1]");
}

#[test]
fn failures_come_first() {
    let thrown = Thrown {
        code: ThrownCode::RuntimeError,
        message: "boom".to_owned(),
        at: Some(Position { line: 3, column: 7 }),
        stack: None,
    };
    let expected = "RUNTIME_ERROR: boom\n  at line 3, column 7\n[output]\nhi";
    check("hi\n", Outcome::Threw(thrown), expected);
    check("", Outcome::Cancelled, "CANCELLED: the execution was cancelled");
}

#[test]
fn long_texts_are_cut() {
    check(
        &"x".repeat(200),
        returned("null"),
        "[cut: 200 characters, the first 5 and the last 5 are shown; the whole is the resource \
         codexec://executions/exec_00000000000000000000000000000001]\n\
         xxxxx\n[... 190 characters left out ...]\nxxxxx",
    );
}

fn changed() -> FileChanges {
    FileChanges {
        created: vec![file("plot.png", 12_345), file("a\nb\u{202e}.txt", 0)],
        modified: vec![file("data.csv", 1_234_567)],
        deleted: vec![file("old.txt", 5)],
        held_back: vec![not_written(".mcp.json")],
        conflicts: vec![not_written("a\u{202e}.txt")],
        left_out: 0,
        between_cells: None,
        nested: None,
    }
}

const CHANGED: &str = "[artifacts] codexec://executions/exec_00000000000000000000000000000001/artifacts\n\
    created plot.png (12,345 bytes)\n\
    created a\\nb\\u{202e}.txt (0 bytes)\n\
    modified data.csv (1,234,567 bytes)\n\
    deleted old.txt\n\
    conflict a\\u{202e}.txt: of a reason\n\
    held back .mcp.json: of a reason";

fn not_written(path: &str) -> NotWritten {
    NotWritten { path: path.to_owned(), reason: "of a reason".to_owned() }
}

#[test]
fn notes_follow_output_and_value() {
    let with = |output: &str, outcome: Outcome| {
        let mut execution = execution(output, outcome);
        execution.changes = changed();
        execution
    };
    check_whole(&with("", returned("null")), CHANGED);
    check_whole(&with("hi\n", returned("null")), &format!("hi\n{CHANGED}"));
    check_whole(&with("hi\n", returned("1")), &format!("hi\n[result]\n1\n{CHANGED}"));
    check_whole(
        &with("hi\n", Outcome::Exited { code: 3 }),
        &format!("NONZERO_EXIT: the program ended with exit code 3\n[output]\nhi\n{CHANGED}"),
    );
    let mut limited = with("", returned("null"));
    limited.limits_met = vec![Limit::Disk, Limit::Processes];
    check_whole(
        &limited,
        &format!(
            "{CHANGED}\n[limits]\nDISK_LIMIT: more than 256 MiB or 16384 files on disk\n\
             PROCESS_LIMIT: more than 128 processes and threads"
        ),
    );
    let mut late = with("", returned("null"));
    late.changes.between_cells = Some(Box::new(changed()));
    let between = CHANGED.replace("[artifacts]", "[artifacts written between the cells]");
    let (heading, files) = between.split_once('\n').expect("a heading");
    let heading = heading.split_once(" codexec:").expect("an address").0;
    check_whole(&late, &format!("{CHANGED}\n{heading}\n{files}"));
    late.changes =
        FileChanges { between_cells: late.changes.between_cells, ..FileChanges::default() };
    check_whole(&late, &between);
    limited.changes = FileChanges::default();
    limited.limits_met = vec![Limit::OpenFiles];
    check_whole(&limited, "[limits]\nOPEN_FILES_LIMIT: more than 1024 open files");
}

#[test]
fn many_files_are_counted_and_the_reply_tells_where_they_are() {
    let mut many = execution("", returned("null"));
    many.changes.created = (0..30).map(|n| file(&format!("f{n}"), 1)).collect();
    let lines = |execution: &FinishedExecution| {
        let text = render_reply(execution, TextBudget::DEFAULT).text;
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let told = lines(&many);
    assert_eq!(told.len(), 22);
    assert_eq!(told[20], "created f19 (1 bytes)");
    assert_eq!(told[21], "... and 10 more");
    // Files that were held back are listed all the same.
    many.changes.held_back = (0..7).map(|n| not_written(&format!(".hook{n}"))).collect();
    many.changes.left_out = 100;
    let told = lines(&many);
    assert_eq!(told.len(), 22);
    assert!(told[16].starts_with("held back .hook0: "), "{told:?}");
    assert_eq!(told[21], "... and 117 more");
    // A short list is complete, whatever it consists of.
    many.changes = FileChanges::default();
    many.changes.held_back = (0..20).map(|n| not_written(&format!(".hook{n}"))).collect();
    assert_eq!(lines(&many).len(), 21);
}

#[test]
fn hostile_names_do_not_break_the_budget() {
    let mut hostile = execution(&"x".repeat(50_000), returned("null"));
    for letter in ["n", "\u{e0041}", "\n"] {
        hostile.changes.created = (0..20).map(|_| file(&letter.repeat(4_000), 1)).collect();
        let text = render_reply(&hostile, TextBudget::DEFAULT).text;
        assert!(text.chars().count() <= 10_000, "{}", text.chars().count());
    }
}

#[test]
fn images_follow_the_text() {
    let mut shown = execution("", returned("null"));
    let image = Image { mime: ImageType::Png, base64: "iVBORw0KGgo=".to_owned() };
    shown.images.shown = vec![image.clone()];
    let said = render_reply(&shown, TextBudget::DEFAULT);
    assert_eq!((said.text.as_str(), said.images), ("[1 image]", vec![image.clone()]));
    shown.images.shown = vec![image.clone(), image];
    check_whole(&shown, "[2 images]");
    shown.output = written("hi");
    check_whole(&shown, "hi");
    shown.images.left_out = 3;
    check_whole(&shown, "hi\n[images]\n2 shown, 3 left out: too many, too large, or no images");
}

#[test]
fn signals_have_names() {
    let killed = |signal| Outcome::Crashed(Crash::Killed { signal });
    check("", killed(9), "CRASHED: the program was killed by signal 9 (SIGKILL)");
    check("", killed(11), "CRASHED: the program was killed by signal 11 (SIGSEGV)");
    check("", killed(42), "CRASHED: the program was killed by signal 42");
}

#[test]
fn every_limit_has_a_description() {
    let stopped = Outcome::Stopped;
    check("", stopped(Limit::Cpu), "CPU_LIMIT: stopped: more than 120 s of CPU time");
    check("", stopped(Limit::Memory), "MEMORY_LIMIT: stopped: more than 512 MiB of memory");
    let expected = "PROCESS_LIMIT: stopped: more than 128 processes and threads";
    check("", stopped(Limit::Processes), expected);
}

#[test]
fn the_reply_tells_the_state_of_the_session() {
    let id = Some(codexec_types::SessionId::from_bits(1));
    let mut execution = execution("", Outcome::Stopped(Limit::Wall));
    let last = |execution: &FinishedExecution| {
        let text = render_reply(execution, TextBudget::DEFAULT).text;
        text.split_once("[session]\n").map(|(_, said)| said.to_owned())
    };
    assert_eq!(last(&execution), None);
    execution.session = id;
    let goes_on = "the code was interrupted, and the session goes on with what it had done";
    assert_eq!(last(&execution).as_deref(), Some(goes_on));
    execution.session_ended = Some("timeout");
    let gone = "it has ended (timeout), and its state is gone; use the name again for a new one";
    assert_eq!(last(&execution).as_deref(), Some(gone));
    execution.outcome = Outcome::Exited { code: 1 };
    execution.session_ended = None;
    assert_eq!(last(&execution), None);
}

#[test]
fn a_file_of_another_group_is_explained() {
    let mut told = execution("bash: f: Value too large for defined data type", returned("null"));
    let text = render_reply(&told, TextBudget::DEFAULT).text;
    assert!(text.contains("\n[files]\n\"value too large\" for a file"), "{text}");
    told.output = written("");
    assert!(!render_reply(&told, TextBudget::DEFAULT).text.contains("[files]"));
}

#[test]
fn a_new_session_and_nested_changes_are_told() {
    let mut told = execution("", returned("null"));
    told.session_replaces = Some("idle_timeout".to_owned());
    let new = "[session]\nthis is a new session: the earlier one has ended (idle_timeout), and its \
               state is gone";
    check_whole(&told, new);
    let nested = CHANGED.replace("[artifacts]", "[artifacts of code that this code ran]");
    told.changes.nested = Some(Box::new(changed()));
    check_whole(&told, &format!("{nested}\n{new}"));
}

#[test]
fn a_traceback_is_told_once_and_a_hint_follows_the_message() {
    let thrown = Thrown {
        code: ThrownCode::RuntimeError,
        message: "ModuleNotFoundError: No module named 'x'".to_owned(),
        at: Some(Position { line: 1, column: 1 }),
        stack: Some(
            "Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    \
             import x\nModuleNotFoundError: No module named 'x'\n"
                .to_owned(),
        ),
    };
    let mut told = execution("", Outcome::Threw(thrown));
    told.hint = Some("install it".to_owned());
    let expected = "RUNTIME_ERROR: ModuleNotFoundError: No module named 'x'; install it\n  File \
                    \"main.py\", line 1, in <module>\n    import x";
    check_whole(&told, expected);
    told.outcome = Outcome::Exited { code: 6 };
    check_whole(&told, "NONZERO_EXIT: the program ended with exit code 6; install it");
    told.outcome = returned("1");
    check_whole(&told, "1\n[hint]\ninstall it");
}
