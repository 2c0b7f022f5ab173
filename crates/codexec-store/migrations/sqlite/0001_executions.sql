-- One row per execution: written before anything runs, finished exactly once.
CREATE TABLE executions (
    seq               INTEGER PRIMARY KEY,
    id                TEXT    NOT NULL UNIQUE,
    -- The server process that runs it; see owner.rs for how its death is noticed.
    owner             TEXT    NOT NULL,
    status            TEXT    NOT NULL,
    started_ms        INTEGER NOT NULL,
    language          TEXT    NOT NULL,
    wall_ms           INTEGER NOT NULL,
    -- NULL until the end, and after it where the code ran to its own end.
    error_code        TEXT,
    message           TEXT,
    -- For an interrupted one: when that was noticed.
    ended_ms          INTEGER,
    duration_us       INTEGER,
    tool_calls        INTEGER,
    posture           TEXT,
    peak_memory_bytes INTEGER,
    cpu_us            INTEGER,
    value             TEXT,
    output            TEXT,
    input             TEXT    NOT NULL,
    code              TEXT    NOT NULL
) STRICT;

-- Small however long the history is: only what runs now stands in it.
CREATE INDEX executions_running ON executions (owner) WHERE status = 'running';
