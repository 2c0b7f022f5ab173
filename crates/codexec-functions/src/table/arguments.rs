//! The arguments that functions share, optional and listed unless a row says otherwise.

use crate::defaults::{list_length, max_wall_ms, wall_ms};
use crate::{Argument, ArgumentType};

const fn text(name: &'static str, description: &'static str) -> Argument {
    Argument::new(name, ArgumentType::Text, description)
}

const fn texts(name: &'static str, description: &'static str) -> Argument {
    Argument::new(name, ArgumentType::Texts, description)
}

const fn integer(name: &'static str, description: &'static str) -> Argument {
    Argument::new(name, ArgumentType::Integer, description)
}

pub(super) const LANGUAGE: Argument = Argument::new(
    "language",
    ArgumentType::Language,
    "needed, unless `session` or `script` has one",
)
.option("--language");
pub(super) const CODE: Argument = text("code", "the code to run").option("the code");
pub(super) const INPUT: Argument =
    Argument::new("input", ArgumentType::Json, "any JSON, `input` in the code").option("--input");
pub(super) const ARGS: Argument = texts("args", "`args` in the code; in Bash `$1`, `$2` ..");
pub(super) const WORKING_DIR: Argument = text("working_dir", "whole path").option("--working-dir");
pub(super) const TIMEOUT_MS: Argument =
    integer("timeout_ms", concat!("1-", max_wall_ms!(), ", default ", wall_ms!()))
        .option("--timeout, in milliseconds");
pub(super) const SESSION_ID: Argument =
    text("session_id", "the id or name of an open session").option("--session");
pub(super) const VERSION: Argument =
    integer("version", "an earlier version; default: the newest").option("--version");
pub(super) const NAME: Argument = text("name", "the script's name").option("NAME");
pub(super) const TAG: Argument = text("tag", "only scripts with this tag").option("--tag");
pub(super) const QUERY: Argument = text("query", "what the script does").option("the words");
pub(super) const LIMIT: Argument =
    integer("limit", concat!("default ", list_length!())).option("--limit");
pub(super) const OFFSET: Argument = integer("offset", "how many to skip").option("--offset");
pub(super) const PACKAGE: Argument =
    text("package", "name, or name==1.2 / name@1.2").option("PACKAGE");
pub(super) const PACKAGE_LANGUAGE: Argument =
    Argument::new("language", ArgumentType::Choice(&["python", "node"]), "default: the session's")
        .option("--language");
pub(super) const SCRIPT: Argument = text("script", "a saved script to run instead of `code`");
pub(super) const SESSION: Argument =
    text("session", "the id or name of a session to run in; an unknown name opens one");
pub(super) const STATUS: Argument = Argument::new(
    "status",
    ArgumentType::Choice(&["success", "failed", "timeout"]),
    "also running, interrupted and cancelled",
)
.option("--status");
pub(super) const SINCE: Argument = text("since", "2026-02-09 or with a time").option("--since");
pub(super) const UNTIL: Argument = text("until", "like `since`").option("--until");
pub(super) const TOOL: Argument = text("tool", "only executions that called it").option("--tool");
pub(super) const EXECUTION_ID: Argument = text("execution_id", "the execution's id").option("ID");

/// The arguments that narrow what the code may call.
pub(super) const NARROWING: &[Argument] = &[
    texts("allowed_tools", "the tools that the code may call, like `github.*`; none if empty")
        .hidden()
        .option("--allowed-tools"),
    texts("allowed_servers", "the servers whose tools the code may call").hidden(),
    integer("max_tool_calls", "how many tools the code may call").hidden(),
];

/// The arguments of a script that is saved.
pub(super) const SCRIPT_DRAFT: &[Argument] = &[
    NAME.required(),
    text("description", "what the script is for").expected().option("--description"),
    LANGUAGE.expected().meaning("in code, the default is the code's own"),
    CODE.required().meaning("the code to keep"),
    texts("tags", "words to find the script by").option("--tag"),
    texts("packages", "the packages that the code imports").option("--package"),
    Argument::new("parameters", ArgumentType::Object, "JSON Schema of `input`")
        .described()
        .option("--parameters"),
    text("source_execution_id", "the execution that the code comes from").option("--source"),
    Argument::new("expose", ArgumentType::Boolean, "as a tool of its own")
        .described()
        .option("--expose"),
];
