use super::{SeedSetting, SettingMeaning, ValueFormat, bare, variable};
use SettingMeaning::{Ignored, Keys, Only, Used};

const DAYS: ValueFormat = ValueFormat::Number(1, 36_500);
const ONE_SANDBOX: &str = "codexec starts no containers; leave it out: code never has a \
                           network, and always a memory limit and a read-only root";

pub(super) const SETTINGS: &[SeedSetting] = &[
    variable(
        "CODEXEC_DEFAULT_TIMEOUT_MS",
        Keys(&["limits.timeout-ms"], ValueFormat::Number(1, 86_400_000)),
    ),
    variable(
        "CODEXEC_MAX_TIMEOUT_MS",
        Keys(&["limits.max-timeout-ms"], ValueFormat::Number(1, 86_400_000)),
    ),
    variable(
        "CODEXEC_MAX_OUTPUT_CHARS",
        Keys(&["replies.max-chars"], ValueFormat::Number(100, 1_000_000)),
    ),
    variable("CODEXEC_TRUNCATION_HEAD", Keys(&["replies.head"], ValueFormat::Number(0, 1_000_000))),
    variable("CODEXEC_TRUNCATION_TAIL", Keys(&["replies.tail"], ValueFormat::Number(0, 1_000_000))),
    variable(
        "CODEXEC_SESSION_IDLE_TIMEOUT_MS",
        Keys(&["sessions.idle-s"], ValueFormat::WholeSeconds(1, 86_400_000)),
    ),
    variable("CODEXEC_MAX_SESSIONS", Keys(&["sessions.max"], ValueFormat::Number(0, 100))),
    variable("CODEXEC_SCRIPTS_DIR", Keys(&["scripts.folder"], ValueFormat::Path)),
    variable("CODEXEC_LOG_RETENTION_DAYS_SUCCESS", Keys(&["logs.success-days"], DAYS)),
    variable("CODEXEC_LOG_RETENTION_DAYS_FAILURE", Keys(&["logs.failure-days"], DAYS)),
    variable("CODEXEC_LOG_RETENTION_DAYS_SESSION", Keys(&["logs.session-days"], DAYS)),
    variable("CODEXEC_MAX_PROCESSES", Keys(&["limits.processes"], ValueFormat::Number(8, 4_096))),
    variable(
        "CODEXEC_MAX_FILE_SIZE_BYTES",
        Keys(&["limits.disk-mib"], ValueFormat::Bytes(1, 16_384)),
    ),
    variable(
        "CODEXEC_DOCKER_MEMORY",
        Keys(&["limits.memory-mib"], ValueFormat::Memory(32, 65_536)),
    ),
    variable(
        "CODEXEC_LOG_DIR",
        Ignored(
            "the log files are in $CODEXEC_HOME/logs, beside the database; $CODEXEC_HOME moves \
             both",
        ),
    ),
    variable(
        "CODEXEC_SANDBOX_DIR",
        Ignored("each execution has its own workspace in memory, not on disk"),
    ),
    variable("CODEXEC_SANDBOX_MODE", Only("subprocess", ONE_SANDBOX)),
    variable(
        "CODEXEC_DOCKER_IMAGE",
        Ignored("no image is needed; `[python]` and `[node]` name the interpreters"),
    ),
    variable(
        "CODEXEC_DOCKER_CPU",
        Ignored("`limits.cpu-s` bounds CPU time; the share of the cores is not limited"),
    ),
    variable("CODEXEC_DOCKER_NETWORK", Ignored("code never has a network")),
    bare("LOG_LEVEL", Used("the same as CODEXEC_LOG, which wins: debug, info, warn or error")),
];
