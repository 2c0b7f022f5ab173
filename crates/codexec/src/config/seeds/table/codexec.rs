use super::{Form, Here, Setting, bare, variable};
use Here::{Keys, Nothing, Used};

const DAYS: Form = Form::Number(1, 36_500);
const ONE_SANDBOX: &str = "there is one kind of sandbox here, and it is never left out";

pub(super) const SETTINGS: &[Setting] = &[
    variable(
        "CODEXEC_DEFAULT_TIMEOUT_MS",
        Keys(&["limits.timeout-ms"], Form::Number(1, 86_400_000)),
    ),
    variable(
        "CODEXEC_MAX_TIMEOUT_MS",
        Keys(&["limits.max-timeout-ms"], Form::Number(1, 86_400_000)),
    ),
    variable(
        "CODEXEC_MAX_OUTPUT_CHARS",
        Keys(&["replies.max-chars"], Form::Number(100, 1_000_000)),
    ),
    variable("CODEXEC_TRUNCATION_HEAD", Keys(&["replies.head"], Form::Number(0, 1_000_000))),
    variable("CODEXEC_TRUNCATION_TAIL", Keys(&["replies.tail"], Form::Number(0, 1_000_000))),
    variable(
        "CODEXEC_SESSION_IDLE_TIMEOUT_MS",
        Keys(&["sessions.idle-s"], Form::WholeSeconds(1, 86_400_000)),
    ),
    variable("CODEXEC_MAX_SESSIONS", Keys(&["sessions.max"], Form::Number(0, 100))),
    variable("CODEXEC_SCRIPTS_DIR", Keys(&["scripts.folder"], Form::Path)),
    variable("CODEXEC_LOG_RETENTION_DAYS_SUCCESS", Keys(&["logs.success-days"], DAYS)),
    variable("CODEXEC_LOG_RETENTION_DAYS_FAILURE", Keys(&["logs.failure-days"], DAYS)),
    variable("CODEXEC_LOG_RETENTION_DAYS_SESSION", Keys(&["logs.session-days"], DAYS)),
    variable("CODEXEC_MAX_PROCESSES", Keys(&["limits.processes"], Form::Number(8, 4_096))),
    variable("CODEXEC_MAX_FILE_SIZE_BYTES", Keys(&["limits.disk-mib"], Form::Bytes(1, 16_384))),
    variable("CODEXEC_DOCKER_MEMORY", Keys(&["limits.memory-mib"], Form::Memory(32, 65_536))),
    variable(
        "CODEXEC_LOG_DIR",
        Nothing(
            "the log files follow a database and stay beside it, in `logs` of $CODEXEC_HOME, which \
             moves both",
        ),
    ),
    variable(
        "CODEXEC_SANDBOX_DIR",
        Nothing("an execution has a workspace of its own, which is nowhere on this machine's disk"),
    ),
    variable("CODEXEC_SANDBOX_MODE", Nothing(ONE_SANDBOX)),
    variable(
        "CODEXEC_DOCKER_IMAGE",
        Nothing("no image is needed; `python` and `node` name the interpreters"),
    ),
    variable(
        "CODEXEC_DOCKER_CPU",
        Nothing(
            "the time of an execution is bounded by `limits.cpu-s`, not its share of the cores",
        ),
    ),
    variable("CODEXEC_DOCKER_NETWORK", Nothing("code never has a network here")),
    bare(
        "LOG_LEVEL",
        Used("the same as CODEXEC_LOG, which counts more: debug, info, warn or error"),
    ),
];
