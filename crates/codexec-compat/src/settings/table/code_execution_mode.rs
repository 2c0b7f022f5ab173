use super::{SeedSetting, SettingMeaning, ValueFormat, entry, variable};
use SettingMeaning::{Ignored, Keys, Used};

const NO_CONTAINER: &str = "no container is started; the sandbox uses kernel namespaces";

pub(super) const SETTINGS: &[SeedSetting] = &[
    variable(
        "MCP_BRIDGE_TIMEOUT",
        Keys(&["code-execution-mode.timeout-ms"], ValueFormat::Seconds(1, 86_400)),
    ),
    variable(
        "MCP_BRIDGE_MAX_TIMEOUT",
        Keys(&["code-execution-mode.max-timeout-ms"], ValueFormat::Seconds(1, 86_400)),
    ),
    variable(
        "MCP_BRIDGE_OUTPUT_MODE",
        Keys(
            &["code-execution-mode.output"],
            ValueFormat::Word(&[("compact", "compact"), ("toon", "toon")]),
        ),
    ),
    variable("MCP_BRIDGE_MEMORY", Keys(&["limits.memory-mib"], ValueFormat::Memory(32, 65_536))),
    variable("MCP_BRIDGE_PIDS", Keys(&["limits.processes"], ValueFormat::Number(8, 4_096))),
    variable("MCP_SERVERS_CONFIG", Used("a server file in JSON or TOML, as with `--mcp-config`")),
    variable(
        "MCP_BRIDGE_LOG_LEVEL",
        Used("the same as CODEXEC_LOG, which wins: DEBUG, INFO, WARNING, ERROR or CRITICAL"),
    ),
    variable(
        "MCP_BRIDGE_CPUS",
        Ignored("`limits.cpu-s` bounds CPU time; the share of the cores is not limited"),
    ),
    variable("MCP_BRIDGE_RUNTIME", Ignored(NO_CONTAINER)),
    variable(
        "MCP_BRIDGE_IMAGE",
        Ignored("no image is needed; `python.interpreter` names the interpreter"),
    ),
    variable(
        "MCP_BRIDGE_CONTAINER_USER",
        Ignored(
            "code runs as the user agent (1000) of its own user namespace, without capabilities",
        ),
    ),
    variable("MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", Ignored(NO_CONTAINER)),
    variable(
        "MCP_BRIDGE_STATE_DIR",
        Ignored("no state is passed through files; $CODEXEC_HOME holds all state"),
    ),
    variable(
        "MCP_BRIDGE_ALLOW_SELF_SERVER",
        Ignored("codexec never starts itself; `codexec servers enable` enables any other server"),
    ),
    variable("MCP_AVAILABLE_SERVERS", Ignored("only for the container; code uses `mcp.runtime`")),
    variable("MCP_DISCOVERED_SERVERS", Ignored("only for the container; code uses `mcp.runtime`")),
    entry("command", Used("the program")),
    entry("args", Used("its arguments")),
    entry("env", Used("its variables")),
    entry("cwd", Used("its working directory")),
    entry("description", Ignored("the server's own description is used")),
];
