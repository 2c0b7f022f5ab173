use super::{Form, Here, Setting, entry, key, variable};
use Here::{Keys, Nothing, Used};

const HOUR_MS: u64 = 3_600_000;
const IN_ALL: Here = Keys(&["gateway.max-total-concurrency"], Form::Limit(10_000));
const QUEUE: Here = Keys(&["gateway.queue"], Form::Number(0, 10_000));
const QUEUE_WAIT: Here = Keys(&["gateway.queue-wait-ms"], Form::Written(0, HOUR_MS));
const NO_PORT: Here = Nothing("codexec is started by its client and listens on no port");
const NO_ISOLATION: Here =
    Nothing("your servers run as you have them; what is confined is the code that calls them");
const NO_INTERVAL: Here = Nothing(
    "a server that has died is started again when it is called, and tells new tools itself",
);
const NO_REGISTRY: Here = Nothing("`codexec servers add` names a server; no registry is searched");
const NO_TELEMETRY: Here = Nothing("nothing is told to anybody");
const NO_UPDATE: Here = Nothing("codexec does not look for updates");
const NO_SCAN: Here = Nothing(
    "definitions are compared with what you agreed to (`gateway.trust`), and secrets are masked in \
     what is kept",
);
const NO_USERS: Here = Nothing("codexec belongs to the user who starts it");
const ONE_WAY: Here = Nothing("how tools are listed is the toolset's own way, see `--toolset`");
const NO_PROMPTS: Here = Nothing("prompts of your servers are not passed on");
const NO_RECORD_LIMIT: Here = Nothing("what is kept is bounded by `logs.max-mib` and by days");
const OTHER_LOG: Here = Nothing("CODEXEC_LOG says how much is told on standard error");
const DERIVED: Here = Nothing("it does nothing there either");

pub(super) const SETTINGS: &[Setting] = &[
    // False where the file does not say it.
    key("enable_code_execution", Keys(&["mcpproxy.enabled"], Form::Flag)),
    key("code_execution_timeout_ms", Keys(&["mcpproxy.timeout-ms"], Form::Number(1, 600_000))),
    key(
        "code_execution_max_tool_calls",
        Keys(&["mcpproxy.max-tool-calls"], Form::Number(0, 100_000)),
    ),
    key("code_execution_pool_size", Keys(&["workers.max"], Form::Number(1, 100))),
    key(
        "code_execution_max_parallel",
        Nothing("`call_tools` has its own `max_parallel`, and `gateway.max-concurrency` holds"),
    ),
    key("tools_limit", Keys(&["mcpproxy.tools-limit"], Form::Number(1, 1_000))),
    key("call_tool_timeout", Keys(&["gateway.timeout-ms"], Form::Written(1, HOUR_MS))),
    variable("MCPPROXY_MAX_CONCURRENT_REQUESTS", IN_ALL),
    variable("MCPPROXY_QUEUE_SIZE", QUEUE),
    variable("MCPPROXY_QUEUE_TIMEOUT", QUEUE_WAIT),
    key("max_concurrent_requests", IN_ALL),
    key("queue_size", QUEUE),
    key("queue_timeout", QUEUE_WAIT),
    key(
        "server_concurrency_defaults.max_concurrent_requests",
        Keys(&["gateway.max-concurrency"], Form::Limit(1_000)),
    ),
    key("server_concurrency_defaults.queue_size", QUEUE),
    key("server_concurrency_defaults.queue_timeout", QUEUE_WAIT),
    key("init_timeout", Keys(&["gateway.startup-timeout-ms"], Form::Written(1, HOUR_MS))),
    key(
        "quarantine_enabled",
        Keys(&["gateway.trust"], Form::Word(&[("true", "ask"), ("false", "auto")])),
    ),
    key(
        "activity_retention_days",
        Keys(
            &["logs.success-days", "logs.failure-days", "logs.session-days"],
            Form::Number(1, 36_500),
        ),
    ),
    key("activity_max_size_mb", Keys(&["logs.max-mib"], Form::Number(16, 16_777_216))),
    key("mcpServers", Used("a list of servers, whose keys are below")),
    key("data_dir", Nothing("$CODEXEC_HOME has all state")),
    key("listen", NO_PORT),
    key("tray_endpoint", NO_PORT),
    key("enable_socket", NO_PORT),
    key("enable_tray", NO_PORT),
    key("http_read_timeout", NO_PORT),
    key("http_write_timeout", NO_PORT),
    key("http_idle_timeout", NO_PORT),
    key("api_key", NO_PORT),
    key("require_mcp_auth", NO_PORT),
    key("trusted_hosts", NO_PORT),
    key("trusted_proxies", NO_PORT),
    key("tls", NO_PORT),
    key("debug_search", Nothing("`codexec tools search --json` shows how tools rank")),
    key("profiles", Nothing("a request narrows its tools itself, and `tools.allowed` all of them")),
    key("top_k", DERIVED),
    key("features", DERIVED),
    key(
        "tool_response_limit",
        Nothing("code reads whole results; what an agent sees of them has one budget"),
    ),
    key("max_result_size_chars", ONE_WAY),
    key("toon_output", ONE_WAY),
    key("toon_min_savings_pct", ONE_WAY),
    key("routing_mode", ONE_WAY),
    key("tool_response_mode", ONE_WAY),
    key("direct_tool_response_mode", ONE_WAY),
    key("tool_response_session_risk_warning", ONE_WAY),
    key("instructions", ONE_WAY),
    key("health_check_interval", NO_INTERVAL),
    key("tool_discovery_interval", NO_INTERVAL),
    key(
        "environment",
        Nothing("a server gets PATH, HOME and the like, and what its own entry names"),
    ),
    key("forward_proxy_env", Nothing("HTTP_PROXY, HTTPS_PROXY and NO_PROXY reach your servers")),
    key("logging", OTHER_LOG),
    key("audit_log", Nothing("every execution and every call is written down; see `codexec logs`")),
    key("read_only_mode", Nothing("agents cannot change which servers there are")),
    key("disable_management", Nothing("agents cannot change which servers there are")),
    key("allow_server_add", Nothing("agents cannot change which servers there are")),
    key("allow_server_remove", Nothing("agents cannot change which servers there are")),
    key("enable_prompts", NO_PROMPTS),
    key("aggregate_upstream_prompts", NO_PROMPTS),
    key("check_server_repo", NO_REGISTRY),
    key("registries", NO_REGISTRY),
    key("registries_locked", NO_REGISTRY),
    key("allow_private_registry_fetch", NO_REGISTRY),
    key("docker_isolation", NO_ISOLATION),
    key("docker_recovery", NO_ISOLATION),
    key("tokenizer", Nothing("`codexec tools stats` counts without one")),
    key("oauth_expiry_warning_hours", Nothing("logins are renewed before they end")),
    key("activity_max_records", NO_RECORD_LIMIT),
    key("activity_max_response_size", NO_RECORD_LIMIT),
    key("activity_cleanup_interval_min", NO_RECORD_LIMIT),
    key("tool_call_max_response_size", NO_RECORD_LIMIT),
    key("tool_call_max_records_per_server", NO_RECORD_LIMIT),
    key("intent_declaration", Nothing("a tool's own annotations say what it may do")),
    key("sensitive_data_detection", NO_SCAN),
    key("output_validation", NO_SCAN),
    key("output_sanitisation", NO_SCAN),
    key("security", NO_SCAN),
    key("telemetry", NO_TELEMETRY),
    key("observability", NO_TELEMETRY),
    key("update_check", NO_UPDATE),
    key("reveal_secret_headers", Nothing("nobody is shown a header's value")),
    key("server_edition", NO_USERS),
    key("teams", NO_USERS),
    variable("MCPPROXY_LISTEN", NO_PORT),
    variable("MCPPROXY_API_KEY", NO_PORT),
    variable("MCPPROXY_TRUSTED_HOSTS", NO_PORT),
    variable("MCPPROXY_TRUSTED_PROXIES", NO_PORT),
    variable("MCPPROXY_TLS_ENABLED", NO_PORT),
    variable("MCPPROXY_CERTS_DIR", NO_PORT),
    variable("MCPPROXY_DATA_DIR", Nothing("$CODEXEC_HOME has all state")),
    variable("MCPPROXY_HOME", Nothing("`--mcp-config` and `codexec migrate --path` name its file")),
    variable("MCPPROXY_DEBUG", OTHER_LOG),
    variable(
        "MCPPROXY_DISABLE_OAUTH",
        Nothing("a login is opened by `codexec servers login` only"),
    ),
    variable("MCPPROXY_TELEMETRY", NO_TELEMETRY),
    variable("MCPPROXY_DISABLE_AUTO_UPDATE", NO_UPDATE),
    variable("MCPPROXY_ALLOW_PRERELEASE_UPDATES", NO_UPDATE),
    entry("name", Used("its name")),
    entry("url", Used("where it is")),
    entry("protocol", Used("`type`: stdio, http, streamable-http, sse, or auto for what fits")),
    entry("command", Used("the program")),
    entry("args", Used("its arguments")),
    entry("env", Used("its variables; `${env:NAME}` is filled in, `${keyring:name}` is a problem")),
    entry("working_dir", Used("`cwd`")),
    entry("headers", Used("`headers`")),
    entry("oauth", Used("`oauth`: client_id, client_secret, scopes")),
    entry("enabled", Used("`enabled`: false leaves it out")),
    entry("quarantined", Used("`trust = \"manual\"`: its tools are held until you approve them")),
    entry("trust_mode", Used("`trust`: auto, ask for scan, manual")),
    entry("skip_quarantine", Used("`trust = \"auto\"`")),
    entry("auto_approve_tool_changes", Used("`trust = \"auto\"`")),
    entry("enabled_tools", Used("`enabled-tools`")),
    entry("disabled_tools", Used("`disabled-tools`")),
    entry("init_timeout", Used("`startup-timeout-ms`")),
    entry("max_concurrent_requests", Used("`max-concurrency`; 0 is no limit of its own")),
    entry("queue_size", Nothing("`gateway.queue` holds for each server")),
    entry("queue_timeout", Nothing("`gateway.queue-wait-ms` holds for each server")),
    entry("isolation", NO_ISOLATION),
    entry("shared", NO_USERS),
    entry("auth_broker", NO_USERS),
    entry("created", Nothing("it is for people")),
    entry("updated", Nothing("it is for people")),
    entry("source_registry_id", Nothing("it is for people")),
    entry("source_registry_provenance", Nothing("it is for people")),
    entry("reconnect_on_use", NO_INTERVAL),
    entry("health_check_interval", NO_INTERVAL),
    entry("tool_discovery_interval", NO_INTERVAL),
    entry("launcher_wait_timeout", Nothing("what has a `url` is not started here")),
    entry("expose_prompts", NO_PROMPTS),
    entry("toon_output", ONE_WAY),
    entry("annotation_overrides", Nothing("a tool is what its server says it is")),
];
