//! The table. To add a function, add a row, then the handler that the compiler asks for in
//! `codexec-server/src/own.rs`.

mod arguments;

use self::arguments::{
    ARGS, CODE, EXECUTION_ID, INPUT, LANGUAGE, LIMIT, NAME, NARROWING, OFFSET, PACKAGE,
    PACKAGE_LANGUAGE, QUERY, SCRIPT, SCRIPT_DRAFT, SESSION, SESSION_ID, SINCE, STATUS, TAG,
    TIMEOUT_MS, TOOL, UNTIL, VERSION, WORKING_DIR,
};
use crate::FunctionSpec;
use crate::ToolEffect::{Adds, Reads, Removes, Runs};
use crate::defaults::session_idle_min;

macro_rules! own_functions {
    ($($function:ident => $spec:expr;)+) => {
        /// A function of codexec itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum OwnFunction {
            $($function,)+
        }

        impl OwnFunction {
            /// All functions, in the order in which clients see them.
            pub const ALL: &[OwnFunction] = &[$(OwnFunction::$function,)+];

            pub fn spec(self) -> &'static FunctionSpec {
                match self {
                    $(OwnFunction::$function => {
                        const SPEC: FunctionSpec = $spec;
                        &SPEC
                    })+
                }
            }
        }
    };
}

own_functions! {
    ExecuteCode => FunctionSpec::new(
        "execute_code",
        "Run code once in a sandbox (no network) that can call every MCP tool: Python/JS \
         `await tools.server.tool(..)`, `search_tools(query)`, `help()`; Bash `mcp server tool \
         --arg x`.",
    )
    .arguments_in(&[
        &[LANGUAGE.expected(), CODE.expected(), TIMEOUT_MS.described()],
        &[WORKING_DIR.described(), INPUT.described(), ARGS.hidden()],
        &[SCRIPT.hidden(), VERSION.hidden(), SESSION.hidden()],
        NARROWING,
    ])
    .tool("Run code", Runs)
    .runs_code()
    .command("codexec exec");

    StartSession => FunctionSpec::new(
        "start_session",
        concat!(
            "Open a session that keeps variables, imports and files between sends; ends after ",
            session_idle_min!(),
            " min without one."
        ),
    )
    .arguments_in(&[&[
        LANGUAGE.expected().meaning("in code, the default is the code's own"),
        NAME.meaning("the session's name"),
        WORKING_DIR,
    ]])
    .tool("Start session", Adds)
    .runs_code()
    .guest("sessions", "start", &["language", "name"])
    .command("codexec sessions open");

    SendToSession => FunctionSpec::new(
        "send_to_session",
        "Run code in a session; the last expression is shown.",
    )
    .arguments_in(&[
        &[SESSION_ID.expected(), CODE.required(), TIMEOUT_MS],
        &[LANGUAGE.hidden().meaning("instead of `session_id`, to open a session")],
        &[INPUT.hidden(), ARGS.hidden()],
        &[WORKING_DIR.hidden().meaning("the new session's, if `language` opens one")],
        NARROWING,
    ])
    .tool("Send to session", Runs)
    .runs_code()
    .guest("sessions", "send", &["session_id", "code"]);

    CloseSession => FunctionSpec::new("close_session", "End a session and free what it holds.")
        .arguments_in(&[&[SESSION_ID.required()]])
        .tool("Close session", Removes)
        .runs_code()
        .guest("sessions", "close", &["session_id"]);

    ListSessions => FunctionSpec::new("list_sessions", "Open sessions.")
        .tool("List sessions", Reads)
        .guest("sessions", "list", &[])
        .command("codexec sessions list");

    SnapshotSession => FunctionSpec::new(
        "snapshot_session",
        "Store what is needed to restore a Python or JavaScript session.",
    )
    .arguments_in(&[&[
        NAME.required().meaning("the snapshot's name"),
        SESSION_ID.meaning("default: the session that the code runs in"),
    ]])
    .guest("sessions", "snapshot", &["name", "session_id"]);

    RestoreSession => FunctionSpec::new(
        "restore_session",
        "Open a session from a snapshot: its code runs again, with the stored answers of tools.",
    )
    .arguments_in(&[&[NAME.required().meaning("the snapshot's name")]])
    .runs_code()
    .guest("sessions", "restore", &["name"]);

    ListSnapshots => FunctionSpec::new("list_snapshots", "Stored snapshots.")
        .guest("sessions", "snapshots", &[]);

    SessionHistory => FunctionSpec::new(
        "session_history",
        "Open sessions of every codexec on this machine, and ended ones; newest first.",
    )
    .arguments_in(&[&[LIMIT]])
    .command("codexec sessions list");

    InstallPackage => FunctionSpec::new(
        "install_package",
        "Install a pip or npm package into a session, or without one for all.",
    )
    .arguments_in(&[&[
        SESSION_ID,
        PACKAGE.required().described(),
        PACKAGE_LANGUAGE.expected(),
    ]])
    .tool("Install package", Runs)
    .runs_code()
    .guest("packages", "install", &["package", "language"])
    .command("codexec packages install");

    ListPackages => FunctionSpec::new("list_packages", "Installed packages.")
        .arguments_in(&[&[SESSION_ID, PACKAGE_LANGUAGE.meaning("default: both")]])
        .guest("packages", "list", &[])
        .command("codexec packages list");

    SaveScript => FunctionSpec::new(
        "save_script",
        "Keep working code under a name; saving again makes a new version.",
    )
    .arguments_in(&[SCRIPT_DRAFT])
    .tool("Save script", Adds)
    .guest("scripts", "save", &["name", "code"])
    .command("codexec scripts save");

    GetScript => FunctionSpec::new("get_script", "A saved script with its code.")
        .arguments_in(&[&[NAME.required(), VERSION]])
        .tool("Get script", Reads)
        .guest("scripts", "get", &["name", "version"])
        .command("codexec scripts show");

    ListScripts => FunctionSpec::new("list_scripts", "Saved scripts.")
        .arguments_in(&[&[
            LANGUAGE.meaning("only scripts in this language"),
            TAG,
            LIMIT.hidden().meaning("default 100"),
            OFFSET.hidden(),
        ]])
        .tool("List scripts", Reads)
        .guest("scripts", "list", &[])
        .command("codexec scripts list");

    SearchScripts => FunctionSpec::new("search_scripts", "Find saved scripts, best first.")
        .arguments_in(&[&[QUERY.required(), LIMIT.hidden().meaning("default 10")]])
        .tool("Search scripts", Reads)
        .guest("scripts", "search", &["query"])
        .command("codexec scripts search");

    ListScriptVersions => FunctionSpec::new(
        "list_script_versions",
        "The stored versions of a script, newest first.",
    )
    .arguments_in(&[&[NAME.required()]])
    .command("codexec scripts versions");

    RunScript => FunctionSpec::new("run_script", "Run a saved script.")
        .arguments_in(&[
            &[NAME.required(), ARGS, INPUT.meaning("any JSON").described(), VERSION, TIMEOUT_MS],
            &[SESSION_ID.hidden().meaning("as `session` of `execute_code`"), WORKING_DIR.hidden()],
            NARROWING,
        ])
        .tool("Run script", Runs)
        .runs_code()
        .guest("scripts", "run", &["name"])
        .command("codexec scripts run");

    SaveAndRunScript => FunctionSpec::new("save_and_run_script", "save_script, then run_script.")
        .arguments_in(&[
            SCRIPT_DRAFT,
            &[ARGS, TIMEOUT_MS, INPUT.hidden()],
            &[SESSION_ID.hidden().meaning("as `session` of `execute_code`"), WORKING_DIR.hidden()],
            NARROWING,
        ])
        .tool("Save and run script", Runs)
        .runs_code()
        .guest("scripts", "save_and_run", &["name", "code"]);

    DeleteScript => FunctionSpec::new("delete_script", "Remove a script and its versions.")
        .arguments_in(&[&[NAME.required()]])
        .tool("Delete script", Removes)
        .guest("scripts", "delete", &["name"])
        .command("codexec scripts delete");

    SearchExecutionLogs => FunctionSpec::new(
        "search_execution_logs",
        "Past executions, newest first.",
    )
    .arguments_in(&[
        &[LANGUAGE.meaning("only executions in this language"), STATUS],
        &[QUERY.meaning("words in code or output").described(), SINCE.described()],
        &[SESSION_ID.meaning("only executions of this session"), TOOL],
        &[LIMIT.described(), OFFSET, UNTIL.hidden()],
    ])
    .tool("Search logs", Reads)
    .guest("logs", "search", &["query"])
    .command("codexec logs");

    GetExecutionLog => FunctionSpec::new(
        "get_execution_log",
        "All that is kept of one execution.",
    )
    .arguments_in(&[&[EXECUTION_ID.required()]])
    .tool("Get log", Reads)
    .guest("logs", "get", &["execution_id"])
    .command("codexec logs show");
}

impl OwnFunction {
    pub fn from_name(name: &str) -> Option<OwnFunction> {
        OwnFunction::ALL.iter().copied().find(|function| function.name() == name)
    }

    pub fn name(self) -> &'static str {
        self.spec().name
    }
}
