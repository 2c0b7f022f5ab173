use super::{Form, Here, Setting, entry, variable};
use Here::{Keys, Nothing, Used};

const NO_CONTAINER: &str = "no container is started; the sandbox is the kernel's own";

pub(super) const SETTINGS: &[Setting] = &[
    variable(
        "MCP_BRIDGE_TIMEOUT",
        Keys(&["code-execution-mode.timeout-ms"], Form::Seconds(1, 86_400)),
    ),
    variable(
        "MCP_BRIDGE_MAX_TIMEOUT",
        Keys(&["code-execution-mode.max-timeout-ms"], Form::Seconds(1, 86_400)),
    ),
    variable(
        "MCP_BRIDGE_OUTPUT_MODE",
        Keys(
            &["code-execution-mode.output"],
            Form::Word(&[("compact", "compact"), ("toon", "toon")]),
        ),
    ),
    variable("MCP_BRIDGE_MEMORY", Keys(&["limits.memory-mib"], Form::Memory(32, 65_536))),
    variable("MCP_BRIDGE_PIDS", Keys(&["limits.processes"], Form::Number(8, 4_096))),
    variable(
        "MCP_SERVERS_CONFIG",
        Used("a file that names servers, in JSON or TOML, as with `--mcp-config`"),
    ),
    variable(
        "MCP_BRIDGE_LOG_LEVEL",
        Used("the same as CODEXEC_LOG, which counts more: DEBUG, INFO, WARNING, ERROR or CRITICAL"),
    ),
    variable(
        "MCP_BRIDGE_CPUS",
        Nothing(
            "the time of an execution is bounded by `limits.cpu-s`, not its share of the cores",
        ),
    ),
    variable("MCP_BRIDGE_RUNTIME", Nothing(NO_CONTAINER)),
    variable(
        "MCP_BRIDGE_IMAGE",
        Nothing("no image is needed; `python.interpreter` names the interpreter"),
    ),
    variable(
        "MCP_BRIDGE_CONTAINER_USER",
        Nothing("code runs as nobody, in a user namespace of its own"),
    ),
    variable("MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", Nothing(NO_CONTAINER)),
    variable(
        "MCP_BRIDGE_STATE_DIR",
        Nothing("nothing is passed through files; $CODEXEC_HOME has all state"),
    ),
    variable(
        "MCP_BRIDGE_ALLOW_SELF_SERVER",
        Nothing("codexec never starts itself; `codexec servers enable` uses any other server"),
    ),
    variable("MCP_AVAILABLE_SERVERS", Nothing("it was for the container; code asks `mcp.runtime`")),
    variable(
        "MCP_DISCOVERED_SERVERS",
        Nothing("it was for the container; code asks `mcp.runtime`"),
    ),
    entry("command", Used("the program")),
    entry("args", Used("its arguments")),
    entry("env", Used("its variables")),
    entry("cwd", Used("the directory that it starts in")),
    entry("description", Nothing("a server says itself what it is for")),
];
