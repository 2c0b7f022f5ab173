//! The table of routes. To add one, add a row and its handler; the document, the scopes and the
//! test of isolation follow.

use codexec_functions::{Argument, ArgumentType, OwnFunction};

use super::route::{Documented, Input, Need, Route, events, json};
use super::{
    about, approvals, artifacts, events as feed, executions, logs, openapi, packages, scripts,
    seed_routes, servers, sessions, tokens, tools,
};

const fn text(name: &'static str, description: &'static str) -> Argument {
    Argument::new(name, ArgumentType::Text, description)
}

const fn integer(name: &'static str, description: &'static str) -> Argument {
    Argument::new(name, ArgumentType::Integer, description)
}

const LANGUAGE: Argument =
    Argument::new("language", ArgumentType::Language, "only executions in this language");
const STATUS: Argument = Argument::new(
    "status",
    ArgumentType::Choice(&["success", "failed", "timeout", "running", "interrupted", "cancelled"]),
    "only executions with this status",
);
const SERVER: Argument = text("server", "only tools of this server");

/// The fields of `POST /executions` besides those of `execute_code`.
const START: &[Argument] = &[
    Argument::new(
        "wait",
        ArgumentType::Boolean,
        "false: answer at once with the id; the execution runs on its own",
    ),
    text("agent", "the agent that runs the code; only recorded"),
];

pub(super) const ROUTES: &[Route] = &[
    Route::post(
        "/executions",
        (
            "start_execution",
            "Run code, and answer when it has ended; as a stream of events if the \
         client accepts text/event-stream; at once if `wait` is false.",
        ),
        &[json(200, "FinishedExecution"), events(), json(202, "StartedExecution")],
        |request| Box::pin(executions::start(request)),
    )
    .body(Input::Function(OwnFunction::ExecuteCode, &[], START))
    .errors(&[404, 409, 424]),
    Route::get(
        "/executions",
        ("list_executions", "List executions, running and ended, newest first."),
        &[json(200, "ExecutionList")],
        |request| Box::pin(executions::list(request)),
    )
    .query(Input::Fields(&[
        text("text", "words in the code, the output, the value or the error"),
        LANGUAGE,
        STATUS,
        text("session", "only executions of this session"),
        text("agent", "only executions of this agent"),
        text("tool", "only executions that called this tool"),
        text("since", "the earliest start, like 2026-02-09 or with a time"),
        text("until", "the latest start"),
        integer("limit", "1 to 200, default 50"),
        text("cursor", "`next` of an earlier answer"),
    ])),
    Route::get(
        "/executions/{id}",
        ("get_execution", "Get the whole record of an execution."),
        &[json(200, "Execution")],
        |request| Box::pin(executions::get(request)),
    ),
    Route::get(
        "/executions/{id}/events",
        (
            "watch_execution",
            "Stream what an execution has printed so far and what it does, until \
         it has ended.",
        ),
        &[events()],
        |request| Box::pin(executions::events(request)),
    ),
    Route::post(
        "/executions/{id}/cancel",
        ("cancel_execution", "Cancel a running execution."),
        &[json(202, "StartedExecution")],
        |request| Box::pin(executions::cancel(request)),
    )
    .errors(&[409]),
    Route::get(
        "/executions/{id}/artifacts",
        ("list_artifacts", "List the kept files of an execution."),
        &[json(200, "ArtifactList")],
        |request| Box::pin(artifacts::list(request)),
    ),
    Route::get(
        "/executions/{id}/artifacts/{+path}",
        ("get_artifact", "Get a kept file. A slash in its path may be written as %2F."),
        &[
            Documented { status: 200, media_type: "application/octet-stream", schema: None },
            Documented { status: 200, media_type: "image/*", schema: None },
        ],
        |request| Box::pin(artifacts::get(request)),
    )
    .errors(&[409]),
    Route::get(
        "/sessions",
        ("list_sessions", "List sessions."),
        &[json(200, "SessionList")],
        |request| Box::pin(sessions::list(request)),
    )
    .query(Input::Fields(&[Argument::new(
        "state",
        ArgumentType::Choice(&["open", "all"]),
        "default: open; all: also ended ones",
    )])),
    Route::post(
        "/sessions",
        ("open_session", "Open a session, which keeps its variables between executions."),
        &[json(201, "Session")],
        |request| Box::pin(sessions::open(request)),
    )
    .body(Input::Function(OwnFunction::StartSession, &[], &[]))
    .errors(&[404, 409, 424]),
    Route::get(
        "/sessions/{id}",
        ("get_session", "Get the state of a session."),
        &[json(200, "Session")],
        |request| Box::pin(sessions::get(request)),
    ),
    Route::post(
        "/sessions/{id}/send",
        ("send_to_session", "Run code in a session; like `POST /executions`."),
        &[json(200, "FinishedExecution"), events(), json(202, "StartedExecution")],
        |request| Box::pin(executions::send(request)),
    )
    .body(Input::Function(OwnFunction::SendToSession, &["session_id"], START))
    .errors(&[409, 424]),
    Route::delete(
        "/sessions/{id}",
        ("close_session", "Close a session."),
        &[json(200, "ClosedSession")],
        |request| Box::pin(sessions::close(request)),
    ),
    Route::get(
        "/scripts",
        ("list_scripts", "List saved scripts, or find them with `query`."),
        &[json(200, "ScriptList")],
        |request| Box::pin(scripts::list(request)),
    )
    .query(Input::Function(
        OwnFunction::ListScripts,
        &[],
        &[text("query", "what the script does; not with `tag`, `language` and `offset`")],
    )),
    Route::post(
        "/scripts",
        ("save_script", "Save a script; saving again makes a new version."),
        &[json(201, "SavedScript")],
        |request| Box::pin(scripts::save(request)),
    )
    .body(Input::Function(OwnFunction::SaveScript, &[], &[]))
    .errors(&[404, 409]),
    Route::get(
        "/scripts/{name}",
        ("get_script", "Get a script with its code."),
        &[json(200, "Script")],
        |request| Box::pin(scripts::get(request)),
    )
    .query(Input::Function(OwnFunction::GetScript, &["name"], &[]))
    .errors(&[409]),
    Route::get(
        "/scripts/{name}/versions",
        ("list_script_versions", "List the stored versions of a script, newest first."),
        &[json(200, "ScriptVersionList")],
        |request| Box::pin(scripts::versions(request)),
    )
    .errors(&[409]),
    Route::delete(
        "/scripts/{name}",
        ("delete_script", "Delete a script with its versions."),
        &[json(200, "Named")],
        |request| Box::pin(scripts::delete(request)),
    )
    .errors(&[409]),
    Route::post(
        "/scripts/{name}/run",
        ("run_script", "Run a script; like `POST /executions`."),
        &[json(200, "FinishedExecution"), events(), json(202, "StartedExecution")],
        |request| Box::pin(executions::run_script(request)),
    )
    .body(Input::Function(OwnFunction::RunScript, &["name"], START))
    .errors(&[409, 424]),
    Route::get(
        "/packages",
        ("list_packages", "List installed packages."),
        &[json(200, "PackageList")],
        |request| Box::pin(packages::list(request)),
    )
    .query(Input::Function(OwnFunction::ListPackages, &[], &[]))
    .errors(&[404, 409, 424]),
    Route::post(
        "/packages",
        (
            "install_package",
            "Install a package into a session, or (with the scope `everyone`) \
         for all code.",
        ),
        &[json(201, "InstalledPackage")],
        |request| Box::pin(packages::install(request)),
    )
    .body(Input::Function(OwnFunction::InstallPackage, &[], &[]))
    .errors(&[404, 409, 424]),
    Route::delete(
        "/packages/{language}/{name}",
        ("remove_package", "Remove a package that is installed for all code."),
        &[json(200, "RemovedPackage")],
        |request| Box::pin(packages::remove(request)),
    )
    .for_everyone()
    .errors(&[409, 424]),
    Route::get(
        "/servers",
        ("list_servers", "List the MCP servers and their state."),
        &[json(200, "ServerList")],
        |request| Box::pin(servers::list(request)),
    ),
    Route::get(
        "/servers/{name}",
        ("get_server", "Get the state of one MCP server."),
        &[json(200, "Server")],
        |request| Box::pin(servers::get(request)),
    ),
    Route::post(
        "/servers/{name}/restart",
        ("restart_server", "Stop a server and start it again."),
        &[json(202, "ServerState")],
        |request| Box::pin(servers::restart(request)),
    )
    .for_everyone(),
    Route::post(
        "/servers/{name}/approve",
        ("approve_server", "Approve the entry of a server that waits, exactly as it is."),
        &[json(202, "ServerState")],
        |request| Box::pin(approvals::approve_server(request)),
    )
    .for_everyone(),
    Route::get(
        "/approvals",
        ("list_approvals", "List what waits for the user's approval, with the differences."),
        &[json(200, "ApprovalList")],
        |request| Box::pin(approvals::list(request)),
    )
    .for_everyone(),
    Route::post(
        "/approvals/{id}",
        ("decide_approval", "Approve or deny what was shown. What is denied stays held."),
        &[json(200, "Decision")],
        |request| Box::pin(approvals::decide(request)),
    )
    .for_everyone()
    .body(Input::Fields(&[Argument::new(
        "decision",
        ArgumentType::Choice(&["approve", "deny"]),
        "approve or deny",
    )
    .required()])),
    Route::get(
        "/tools",
        ("list_tools", "List the tools that code may call."),
        &[json(200, "ToolList")],
        |request| Box::pin(tools::list(request)),
    )
    .query(Input::Fields(&[SERVER]))
    .errors(&[404]),
    Route::get(
        "/tools/search",
        ("search_tools", "Find tools by what they do, best first."),
        &[json(200, "ToolList")],
        |request| Box::pin(tools::search(request)),
    )
    .query(Input::Fields(&[
        text("q", "what the tool should do").required(),
        integer("limit", "1 to 100, default 20"),
        Argument::new("detail", ArgumentType::Choice(&["names", "summary", "full"]), "how much"),
        Argument::new(
            "kind",
            ArgumentType::Choice(&["read_only", "safe", "destructive"]),
            "only tools of this kind",
        ),
        SERVER,
    ]))
    .errors(&[404]),
    Route::get(
        "/tools/{server}/{tool}",
        ("get_tool", "Get the whole definition of a tool."),
        &[json(200, "Tool")],
        |request| Box::pin(tools::get(request)),
    )
    .errors(&[409, 424]),
    Route::post(
        "/tools/{server}/{tool}/call",
        ("call_tool", "Call a tool."),
        &[json(200, "ToolResult")],
        |request| Box::pin(tools::call(request)),
    )
    .toolset("direct")
    .body(Input::Fields(&[Argument::new(
        "arguments",
        ArgumentType::Object,
        "the arguments of the tool",
    )]))
    .errors(&[409, 424]),
    Route::get(
        "/logs",
        ("search_logs", "Find past executions, newest first; as the tool search_execution_logs."),
        &[json(200, "LogList")],
        |request| Box::pin(logs::search(request)),
    )
    .query(Input::Function(OwnFunction::SearchExecutionLogs, &[], &[])),
    Route::get(
        "/logs/{id}",
        ("get_log", "Get all that is kept of one execution; as the tool get_execution_log."),
        &[json(200, "Log")],
        |request| Box::pin(logs::get(request)),
    ),
    Route::get(
        "/tokens",
        ("list_tokens", "List the tokens, without their texts."),
        &[json(200, "TokenList")],
        |request| Box::pin(tokens::list(request)),
    )
    .for_everyone(),
    Route::post(
        "/tokens",
        ("create_token", "Make a token. Its text is in this answer, and nowhere else."),
        &[json(201, "NewToken")],
        |request| Box::pin(tokens::create(request)),
    )
    .for_everyone()
    .body(Input::Fields(&[
        text("name", "1 to 64 of A-Z a-z 0-9 _ . -").required(),
        Argument::new("scopes", ArgumentType::Texts, "as of `codexec token create`"),
        integer("expires_in_s", "after so many seconds; default: never"),
    ]))
    .errors(&[409]),
    Route::delete(
        "/tokens/{name}",
        ("revoke_token", "Revoke a token, and stop what it runs."),
        &[json(200, "Named")],
        |request| Box::pin(tokens::revoke(request)),
    )
    .for_everyone()
    .errors(&[409]),
    Route::get(
        "/settings",
        ("get_settings", "Get the settings in force."),
        &[json(200, "Settings")],
        |request| Box::pin(about::settings(request)),
    )
    .for_everyone(),
    Route::get(
        "/health",
        ("get_health", "Get the state of the sandbox, the store and the servers."),
        &[json(200, "Health")],
        |request| Box::pin(about::health(request)),
    ),
    Route::get(
        "/stats",
        ("get_stats", "Get counts of what ran, and the tokens that it saved."),
        &[json(200, "Stats")],
        |request| Box::pin(about::stats(request)),
    ),
    Route::get(
        "/events",
        (
            "watch_events",
            "Stream what changes: execution.started, execution.finished, \
         server.changed, session.changed, approval.changed.",
        ),
        &[events()],
        |request| Box::pin(feed::stream(request)),
    ),
    Route::post(
        "/code/exec",
        ("mcpproxy_exec", "Run JavaScript or TypeScript as MCPProxy does."),
        &[json(200, "McpproxyResult")],
        |request| Box::pin(seed_routes::exec(request)),
    )
    .need(Need::Read)
    .toolset("mcpproxy")
    .body(Input::Raw(&[
        text("code", "the code; or give `script`"),
        text("script", "the name of a script"),
        Argument::new(
            "language",
            ArgumentType::Choice(&["javascript", "typescript"]),
            "default: javascript",
        ),
        Argument::new("input", ArgumentType::Object, "`input` in the code"),
        Argument::new("options", ArgumentType::Object, "timeout_ms, max_tool_calls, .."),
    ])),
    Route::get(
        "/code/scripts",
        ("mcpproxy_scripts", "List the scripts that `POST /code/exec` can run."),
        &[json(200, "McpproxyScripts")],
        |request| Box::pin(seed_routes::scripts(request)),
    )
    .toolset("mcpproxy"),
    Route::get(
        "/openapi.json",
        ("get_openapi", "Get this document."),
        &[json(200, "Document")],
        |_| Box::pin(async { super::ok(&openapi::document()) }),
    ),
];
