use super::{Form, Here, Setting, bare, key, variable};
use Here::{Keys, Nothing, Used};

const TIMEOUT: Here = Keys(&["limits.timeout-ms"], Form::Number(1_000, 300_000));
const AUDIT: Here = Keys(&["code-executor.audit"], Form::Flag);
const AUDIT_LOG: Here = Keys(&["code-executor.audit-log"], Form::Path);
const NO_PATTERNS: Here =
    Nothing("code is not searched for words; the sandbox holds whatever it says");
const NO_SAMPLING: Here = Nothing("code cannot ask a model here");
const NO_KEY: Here = Nothing("code cannot ask a model here, so no key of one is needed");
const NO_PORT: Here =
    Nothing("nothing listens on a port; the tool `health` and `codexec doctor` tell");
const NO_RATE: Here = Nothing(
    "executions are bounded by `workers.max` and wait for their turn; discovery has its own 30 a \
     minute",
);

pub(super) const SETTINGS: &[Setting] = &[
    variable("CODE_EXECUTOR_TIMEOUT_MS", TIMEOUT),
    variable("ALLOWED_PROJECTS", Keys(&["code-executor.projects"], Form::Paths)),
    bare("ENABLE_AUDIT_LOG", AUDIT),
    bare("AUDIT_LOG_PATH", AUDIT_LOG),
    bare("POOL_MAX_CONCURRENT", Keys(&["gateway.max-concurrency"], Form::Number(1, 1_000))),
    bare("POOL_QUEUE_SIZE", Keys(&["gateway.queue"], Form::Number(1, 1_000))),
    bare("POOL_QUEUE_TIMEOUT_MS", Keys(&["gateway.queue-wait-ms"], Form::Number(1_000, 300_000))),
    variable(
        "CODE_EXECUTOR_CONFIG_PATH",
        Used("the first of the files whose keys follow; it has to be there"),
    ),
    variable("MCP_CONFIG_PATH", Used("files that name servers, separated by colons")),
    variable("CODE_EXECUTOR_SKIP_DANGEROUS_PATTERNS", NO_PATTERNS),
    variable(
        "CODE_EXECUTOR_SCHEMA_CACHE_TTL_MS",
        Nothing("a server's own list counts as soon as it has spoken, however old the kept one is"),
    ),
    variable("CODE_EXECUTOR_RATE_LIMIT_RPM", NO_RATE),
    bare("PYTHON_ENABLED", Nothing("Python is there; `languages.enabled` takes it away")),
    bare("PYTHON_SANDBOX_READY", Nothing("Python is always in the sandbox")),
    bare("DENO_PATH", Nothing("TypeScript runs in an engine of ours")),
    bare("ENABLE_HEALTH_CHECK", NO_PORT),
    bare("HEALTH_CHECK_PORT", NO_PORT),
    bare("HEALTH_CHECK_HOST", NO_PORT),
    bare("DOCKER_CONTAINER", Nothing("it found a way out of a container that is not needed here")),
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
        Nothing("no wrappers are generated; tools are called by name"),
    ),
    variable(
        "CODE_EXECUTOR_AUTH_TOKEN",
        Nothing("no wrappers are generated; tools are called by name"),
    ),
    key("version", Nothing("there has been one version of the file")),
    key("security.defaultTimeoutMs", TIMEOUT),
    key("security.maxTimeoutMs", Keys(&["limits.max-timeout-ms"], Form::Number(1_000, 600_000))),
    key("security.allowedTools", Keys(&["code-executor.allowed-tools"], Form::Texts)),
    key("security.allowRead", Keys(&["code-executor.projects"], Form::Paths)),
    key("security.allowWrite", Keys(&["files.writable"], Form::FlagOrList)),
    key("security.enableAuditLog", AUDIT),
    key("security.auditLogPath", AUDIT_LOG),
    key("security.maxCodeSize", Nothing("code may have 1 MiB")),
    key("security.allowNetwork", Nothing("code never has a network here")),
    key("security.rateLimit", NO_RATE),
    key("security.skipDangerousPatternCheck", NO_PATTERNS),
    key(
        "executors.typescript.enabled",
        Keys(&["languages.enabled"], Form::Without(&["typescript", "javascript"])),
    ),
    key("executors.typescript.denoPath", Nothing("TypeScript runs in an engine of ours")),
    key("executors.python.enabled", Keys(&["languages.enabled"], Form::Without(&["python"]))),
    key("executors.python.pythonPath", Keys(&["python.interpreter"], Form::WholePath)),
    key("executors.python.version", Nothing("the interpreter says its version itself")),
    key("sampling", NO_SAMPLING),
    key(
        "mcpConfigPath",
        Used("a file that names servers, if it is written from `/` or `~/` on and is there"),
    ),
];
