use super::{SeedSetting, SettingMeaning, ValueFormat, entry, key, variable};
use SettingMeaning::{Ignored, Keys, Used};

const HOUR_MS: u64 = 3_600_000;
const IN_ALL: SettingMeaning = Keys(&["gateway.max-total-concurrency"], ValueFormat::Limit(10_000));
const QUEUE: SettingMeaning = Keys(&["gateway.queue"], ValueFormat::Number(0, 10_000));
const QUEUE_WAIT: SettingMeaning =
    Keys(&["gateway.queue-wait-ms"], ValueFormat::Duration(0, HOUR_MS));
const NO_PORT: SettingMeaning = Ignored("the client starts codexec, which listens on no port");
const NO_ISOLATION: SettingMeaning =
    Ignored("servers run unconfined, as before; codexec confines the code that calls them");
const NO_INTERVAL: SettingMeaning = Ignored(
    "a dead server is restarted by the next call, and servers announce tool changes themselves",
);
const NO_REGISTRY: SettingMeaning =
    Ignored("codexec searches no registry; use `codexec servers add`");
const NO_TELEMETRY: SettingMeaning = Ignored("codexec sends no telemetry");
const NO_UPDATE: SettingMeaning = Ignored("codexec does not check for updates");
const NO_SCAN: SettingMeaning = Ignored(
    "codexec compares tool definitions with those you approved (`gateway.trust`), and masks \
     secrets in stored data",
);
const NO_USERS: SettingMeaning = Ignored("codexec serves only the user who starts it");
const ONE_WAY: SettingMeaning =
    Ignored("the toolset decides how tools are listed, see `--toolset`");
const NO_PROMPTS: SettingMeaning = Ignored("prompts of servers are not passed on to the client");
const NO_RECORD_LIMIT: SettingMeaning =
    Ignored("`logs.max-mib` and the days in `[logs]` bound the records");
const OTHER_LOG: SettingMeaning = Ignored("CODEXEC_LOG sets the log level for standard error");
const DERIVED: SettingMeaning = Ignored("the key has no effect in MCPProxy either");

pub(super) const SETTINGS: &[SeedSetting] = &[
    // False if the file does not have this key.
    key("enable_code_execution", Keys(&["mcpproxy.enabled"], ValueFormat::Flag)),
    key(
        "code_execution_timeout_ms",
        Keys(&["mcpproxy.timeout-ms"], ValueFormat::Number(1, 600_000)),
    ),
    key(
        "code_execution_max_tool_calls",
        Keys(&["mcpproxy.max-tool-calls"], ValueFormat::Number(0, 100_000)),
    ),
    key("code_execution_pool_size", Keys(&["workers.max"], ValueFormat::Number(1, 100))),
    key(
        "code_execution_max_parallel",
        Ignored("`call_tools` has its own `max_parallel`, and `gateway.max-concurrency` applies"),
    ),
    key("tools_limit", Keys(&["mcpproxy.tools-limit"], ValueFormat::Number(1, 1_000))),
    key("call_tool_timeout", Keys(&["gateway.timeout-ms"], ValueFormat::Duration(1, HOUR_MS))),
    variable("MCPPROXY_MAX_CONCURRENT_REQUESTS", IN_ALL),
    variable("MCPPROXY_QUEUE_SIZE", QUEUE),
    variable("MCPPROXY_QUEUE_TIMEOUT", QUEUE_WAIT),
    key("max_concurrent_requests", IN_ALL),
    key("queue_size", QUEUE),
    key("queue_timeout", QUEUE_WAIT),
    key(
        "server_concurrency_defaults.max_concurrent_requests",
        Keys(&["gateway.max-concurrency"], ValueFormat::Limit(1_000)),
    ),
    key("server_concurrency_defaults.queue_size", QUEUE),
    key("server_concurrency_defaults.queue_timeout", QUEUE_WAIT),
    key("init_timeout", Keys(&["gateway.startup-timeout-ms"], ValueFormat::Duration(1, HOUR_MS))),
    key(
        "quarantine_enabled",
        Keys(&["gateway.trust"], ValueFormat::Word(&[("true", "ask"), ("false", "auto")])),
    ),
    key(
        "activity_retention_days",
        Keys(
            &["logs.success-days", "logs.failure-days", "logs.session-days"],
            ValueFormat::Number(1, 36_500),
        ),
    ),
    key("activity_max_size_mb", Keys(&["logs.max-mib"], ValueFormat::Number(16, 16_777_216))),
    key("mcpServers", Used("the list of servers; their keys are below")),
    key("data_dir", Ignored("$CODEXEC_HOME holds all state")),
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
    key("debug_search", Ignored("`codexec tools search --json` shows the ranking")),
    key("profiles", Ignored("requests narrow their own tools, and `tools.allowed` narrows all")),
    key("top_k", DERIVED),
    key("features", DERIVED),
    key(
        "tool_response_limit",
        Ignored("code reads whole results; `[replies]` limits what an agent sees"),
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
        Ignored("a server gets basic variables like PATH and HOME, and those in its entry"),
    ),
    key("forward_proxy_env", Ignored("HTTP_PROXY, HTTPS_PROXY and NO_PROXY reach your servers")),
    key("logging", OTHER_LOG),
    key("audit_log", Ignored("every execution and every call is recorded; see `codexec logs`")),
    key("read_only_mode", Ignored("agents can never add or remove servers")),
    key("disable_management", Ignored("agents can never add or remove servers")),
    key("allow_server_add", Ignored("agents can never add or remove servers")),
    key("allow_server_remove", Ignored("agents can never add or remove servers")),
    key("enable_prompts", NO_PROMPTS),
    key("aggregate_upstream_prompts", NO_PROMPTS),
    key("check_server_repo", NO_REGISTRY),
    key("registries", NO_REGISTRY),
    key("registries_locked", NO_REGISTRY),
    key("allow_private_registry_fetch", NO_REGISTRY),
    key("docker_isolation", NO_ISOLATION),
    key("docker_recovery", NO_ISOLATION),
    key("tokenizer", Ignored("`codexec tools stats` counts characters instead")),
    key("oauth_expiry_warning_hours", Ignored("tokens are renewed before they expire")),
    key("activity_max_records", NO_RECORD_LIMIT),
    key("activity_max_response_size", NO_RECORD_LIMIT),
    key("activity_cleanup_interval_min", NO_RECORD_LIMIT),
    key("tool_call_max_response_size", NO_RECORD_LIMIT),
    key("tool_call_max_records_per_server", NO_RECORD_LIMIT),
    key("intent_declaration", Ignored("codexec uses the tool's own annotations")),
    key("sensitive_data_detection", NO_SCAN),
    key("output_validation", NO_SCAN),
    key("output_sanitisation", NO_SCAN),
    key("security", NO_SCAN),
    key("telemetry", NO_TELEMETRY),
    key("observability", NO_TELEMETRY),
    key("update_check", NO_UPDATE),
    key("reveal_secret_headers", Ignored("codexec never shows a header's value")),
    key("server_edition", NO_USERS),
    key("teams", NO_USERS),
    variable("MCPPROXY_LISTEN", NO_PORT),
    variable("MCPPROXY_API_KEY", NO_PORT),
    variable("MCPPROXY_TRUSTED_HOSTS", NO_PORT),
    variable("MCPPROXY_TRUSTED_PROXIES", NO_PORT),
    variable("MCPPROXY_TLS_ENABLED", NO_PORT),
    variable("MCPPROXY_CERTS_DIR", NO_PORT),
    variable("MCPPROXY_DATA_DIR", Ignored("$CODEXEC_HOME holds all state")),
    variable("MCPPROXY_HOME", Ignored("use `--mcp-config` or `codexec migrate --path`")),
    variable("MCPPROXY_DEBUG", OTHER_LOG),
    variable("MCPPROXY_DISABLE_OAUTH", Ignored("only `codexec servers login` starts a login")),
    variable("MCPPROXY_TELEMETRY", NO_TELEMETRY),
    variable("MCPPROXY_DISABLE_AUTO_UPDATE", NO_UPDATE),
    variable("MCPPROXY_ALLOW_PRERELEASE_UPDATES", NO_UPDATE),
    entry("name", Used("its name")),
    entry("url", Used("its URL")),
    entry("protocol", Used("`type`: stdio, http, streamable-http, sse, or auto to detect it")),
    entry("command", Used("the program")),
    entry("args", Used("its arguments")),
    entry("env", Used("its variables; `${env:NAME}` is filled in, `${keyring:name}` is an error")),
    entry("working_dir", Used("`cwd`")),
    entry("headers", Used("`headers`")),
    entry("oauth", Used("`oauth`: client_id, client_secret, scopes")),
    entry("enabled", Used("`enabled`: false disables it")),
    entry("quarantined", Used("`trust = \"manual\"`: its tools are held until you approve them")),
    entry("trust_mode", Used("`trust`: auto, ask (for scan) or manual")),
    entry("skip_quarantine", Used("`trust = \"auto\"`")),
    entry("auto_approve_tool_changes", Used("`trust = \"auto\"`")),
    entry("enabled_tools", Used("`enabled-tools`")),
    entry("disabled_tools", Used("`disabled-tools`")),
    entry("init_timeout", Used("`startup-timeout-ms`")),
    entry("max_concurrent_requests", Used("`max-concurrency`; 0 keeps codexec's default")),
    entry("queue_size", Ignored("`gateway.queue` applies to each server")),
    entry("queue_timeout", Ignored("`gateway.queue-wait-ms` applies to each server")),
    entry("isolation", NO_ISOLATION),
    entry("shared", NO_USERS),
    entry("auth_broker", NO_USERS),
    entry("created", Ignored("the key is only information for people")),
    entry("updated", Ignored("the key is only information for people")),
    entry("source_registry_id", Ignored("the key is only information for people")),
    entry("source_registry_provenance", Ignored("the key is only information for people")),
    entry("reconnect_on_use", NO_INTERVAL),
    entry("health_check_interval", NO_INTERVAL),
    entry("tool_discovery_interval", NO_INTERVAL),
    entry("launcher_wait_timeout", Ignored("codexec does not start servers that have a `url`")),
    entry("expose_prompts", NO_PROMPTS),
    entry("toon_output", ONE_WAY),
    entry("annotation_overrides", Ignored("the annotations of the server are used")),
];
