use super::{SeedSetting, SettingMeaning, ValueFormat, bare, key, variable};
use SettingMeaning::{Ignored, Keys, Used};

const TIMEOUT: SettingMeaning = Keys(&["limits.timeout-ms"], ValueFormat::Number(1_000, 300_000));
const AUDIT: SettingMeaning = Keys(&["code-executor.audit"], ValueFormat::Flag);
const AUDIT_LOG: SettingMeaning = Keys(&["code-executor.audit-log"], ValueFormat::Path);
const NO_PATTERNS: SettingMeaning =
    Ignored("code is not scanned for patterns; the sandbox confines all code");
const NO_SAMPLING: SettingMeaning = Ignored("code cannot call a model");
const NO_KEY: SettingMeaning = Ignored("code cannot call a model, so no API key is needed");
const NO_PORT: SettingMeaning =
    Ignored("codexec listens on no port; use the tool `health` or `codexec doctor`");
const RATE: SettingMeaning = Keys(&["code-executor.rate-limit"], ValueFormat::Number(1, 1_000));

pub(super) const SETTINGS: &[SeedSetting] = &[
    variable("CODE_EXECUTOR_TIMEOUT_MS", TIMEOUT),
    variable("ALLOWED_PROJECTS", Keys(&["code-executor.projects"], ValueFormat::Paths)),
    bare("ENABLE_AUDIT_LOG", AUDIT),
    bare("AUDIT_LOG_PATH", AUDIT_LOG),
    bare("POOL_MAX_CONCURRENT", Keys(&["gateway.max-concurrency"], ValueFormat::Number(1, 1_000))),
    bare("POOL_QUEUE_SIZE", Keys(&["gateway.queue"], ValueFormat::Number(1, 1_000))),
    bare(
        "POOL_QUEUE_TIMEOUT_MS",
        Keys(&["gateway.queue-wait-ms"], ValueFormat::Number(1_000, 300_000)),
    ),
    variable(
        "CODE_EXECUTOR_CONFIG_PATH",
        Used("the first of the files whose keys are below; the file must exist"),
    ),
    variable("MCP_CONFIG_PATH", Used("server files, separated by colons")),
    variable("CODE_EXECUTOR_SKIP_DANGEROUS_PATTERNS", NO_PATTERNS),
    variable(
        "CODE_EXECUTOR_SCHEMA_CACHE_TTL_MS",
        Ignored("a server's live tool list replaces the cached one as soon as it arrives"),
    ),
    variable("CODE_EXECUTOR_RATE_LIMIT_RPM", RATE),
    bare("PYTHON_ENABLED", Ignored("Python is enabled by default; see `languages.enabled`")),
    bare("PYTHON_SANDBOX_READY", Ignored("Python always runs in the sandbox")),
    bare("DENO_PATH", Ignored("TypeScript runs in codexec's own engine")),
    bare("ENABLE_HEALTH_CHECK", NO_PORT),
    bare("HEALTH_CHECK_PORT", NO_PORT),
    bare("HEALTH_CHECK_HOST", NO_PORT),
    bare("DOCKER_CONTAINER", Ignored("codexec needs no workaround for containers")),
    variable("CODE_EXECUTOR_SAMPLING_ENABLED", NO_SAMPLING),
    variable("CODE_EXECUTOR_AI_PROVIDER", NO_SAMPLING),
    variable("CODE_EXECUTOR_AI_BASE_URL", NO_SAMPLING),
    variable("CODE_EXECUTOR_MAX_SAMPLING_ROUNDS", NO_SAMPLING),
    variable("CODE_EXECUTOR_MAX_SAMPLING_TOKENS", NO_SAMPLING),
    variable("CODE_EXECUTOR_SAMPLING_TIMEOUT_MS", NO_SAMPLING),
    variable("CODE_EXECUTOR_ALLOWED_SYSTEM_PROMPTS", NO_SAMPLING),
    variable("CODE_EXECUTOR_CONTENT_FILTERING_ENABLED", NO_SAMPLING),
    variable("CODE_EXECUTOR_ALLOWED_MODELS", NO_SAMPLING),
    variable("CODE_EXECUTOR_ALLOWED_MODELS_ANTHROPIC", NO_SAMPLING),
    variable("CODE_EXECUTOR_ALLOWED_MODELS_OPENAI", NO_SAMPLING),
    variable("CODE_EXECUTOR_ALLOWED_MODELS_GEMINI", NO_SAMPLING),
    variable("CODE_EXECUTOR_ALLOWED_MODELS_GROK", NO_SAMPLING),
    variable("CODE_EXECUTOR_ALLOWED_MODELS_PERPLEXITY", NO_SAMPLING),
    bare("ANTHROPIC_API_KEY", NO_KEY),
    bare("OPENAI_API_KEY", NO_KEY),
    bare("GEMINI_API_KEY", NO_KEY),
    bare("GROK_API_KEY", NO_KEY),
    bare("PERPLEXITY_API_KEY", NO_KEY),
    variable(
        "CODE_EXECUTOR_PROXY_URL",
        Ignored("no wrappers are generated; tools are called by name"),
    ),
    variable(
        "CODE_EXECUTOR_AUTH_TOKEN",
        Ignored("no wrappers are generated; tools are called by name"),
    ),
    key("version", Ignored("the file format has only one version")),
    key("security.defaultTimeoutMs", TIMEOUT),
    key(
        "security.maxTimeoutMs",
        Keys(&["limits.max-timeout-ms"], ValueFormat::Number(1_000, 600_000)),
    ),
    key("security.allowedTools", Keys(&["code-executor.allowed-tools"], ValueFormat::Strings)),
    key("security.allowRead", Keys(&["code-executor.projects"], ValueFormat::Paths)),
    key("security.allowWrite", Keys(&["files.writable"], ValueFormat::FlagOrList)),
    key("security.enableAuditLog", AUDIT),
    key("security.auditLogPath", AUDIT_LOG),
    key("security.maxCodeSize", Ignored("the limit is fixed at 1 MiB")),
    key("security.allowNetwork", Ignored("code never has a network")),
    key(
        "security.rateLimit",
        Ignored(
            "`workers.max` bounds executions, and others wait in a queue; `code-executor.rate-limit` \
             bounds discoveries and calls",
        ),
    ),
    key("security.skipDangerousPatternCheck", NO_PATTERNS),
    key(
        "executors.typescript.enabled",
        Keys(&["languages.enabled"], ValueFormat::RemoveLanguages(&["typescript", "javascript"])),
    ),
    key("executors.typescript.denoPath", Ignored("TypeScript runs in codexec's own engine")),
    key(
        "executors.python.enabled",
        Keys(&["languages.enabled"], ValueFormat::RemoveLanguages(&["python"])),
    ),
    key("executors.python.pythonPath", Keys(&["python.interpreter"], ValueFormat::AbsolutePath)),
    key("executors.python.version", Ignored("codexec asks the interpreter for its version")),
    key("sampling", NO_SAMPLING),
    key("mcpConfigPath", Used("a server file, if the path is absolute and the file exists")),
];
