-- Sessions, tool calls, and what search and the log files need.

ALTER TABLE executions ADD COLUMN session TEXT;
ALTER TABLE executions ADD COLUMN script TEXT;
ALTER TABLE executions ADD COLUMN script_version INTEGER;
-- JSON, NULL where the client says nothing about itself.
ALTER TABLE executions ADD COLUMN context TEXT;
ALTER TABLE executions ADD COLUMN principal TEXT;
-- A JSON list, NULL when empty.
ALTER TABLE executions ADD COLUMN args TEXT;
ALTER TABLE executions ADD COLUMN working_dir TEXT;
-- Which bytes of the output went to standard error: JSON, NULL when none.
ALTER TABLE executions ADD COLUMN errors TEXT;
-- Counts the ends, so that the search index knows how far it has read.
ALTER TABLE executions ADD COLUMN end_number INTEGER;
-- The word that people search by; `status` and `error_code` say it more finely.
ALTER TABLE executions ADD COLUMN kind TEXT GENERATED ALWAYS AS (CASE
    WHEN status = 'running' THEN 'running'
    WHEN status = 'returned' THEN 'success'
    WHEN status = 'cancelled' THEN 'cancelled'
    WHEN status = 'stopped' AND error_code = 'TIMEOUT' THEN 'timeout'
    WHEN status = 'failed' AND error_code = 'interrupted' THEN 'interrupted'
    ELSE 'failed' END) VIRTUAL;

UPDATE executions SET end_number = seq WHERE status <> 'running';

-- How far the search index has read, and everything that a search without a text looks at, so that
-- no long row is read for either. What runs stands in `unlogged`.
CREATE INDEX executions_seek ON executions (end_number, started_ms, language, kind, session)
WHERE end_number IS NOT NULL;
CREATE INDEX executions_session ON executions (session) WHERE session IS NOT NULL;

-- One row per tool call: written before it goes out.
CREATE TABLE calls (
    execution    INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    server       TEXT    NOT NULL,
    tool         TEXT    NOT NULL,
    args         TEXT    NOT NULL,
    args_bytes   INTEGER NOT NULL,
    -- NULL until it was answered.
    duration_us  INTEGER,
    error_code   TEXT,
    message      TEXT,
    -- Kept for sessions only.
    result       TEXT,
    result_bytes INTEGER,
    PRIMARY KEY (execution, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX calls_tool ON calls (tool, server, execution);

CREATE TABLE sessions (
    seq         INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    owner       TEXT    NOT NULL,
    principal   TEXT    NOT NULL,
    language    TEXT    NOT NULL,
    name        TEXT,
    pid         INTEGER,
    working_dir TEXT,
    context     TEXT,
    started_ms  INTEGER NOT NULL,
    -- NULL while it lives.
    ended_ms    INTEGER,
    reason      TEXT,
    executions  INTEGER
) STRICT;

CREATE INDEX sessions_living ON sessions (owner) WHERE ended_ms IS NULL;

CREATE TABLE session_packages (
    session TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    version TEXT,
    is_ok   INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL
) STRICT;

CREATE INDEX session_packages_of ON session_packages (session);

-- What does not stand in a log file yet: whatever runs, what has ended since a moment ago, and lines
-- of sessions. Its owner writes it there; when that one died, anybody.
CREATE TABLE unlogged (
    number    INTEGER PRIMARY KEY,
    owner     TEXT    NOT NULL,
    -- Either an execution, or a line of a session's file.
    execution INTEGER,
    session   TEXT,
    line      TEXT
) STRICT;

-- In a trigger, so that a beginning and this are one statement.
CREATE TRIGGER executions_begin AFTER INSERT ON executions WHEN NEW.status = 'running'
BEGIN
    INSERT INTO unlogged (owner, execution) VALUES (NEW.owner, NEW.seq);
END;

INSERT INTO unlogged (owner, execution)
SELECT owner, seq FROM executions WHERE status = 'running';
-- What runs is found there now: an index costs two pages of every execution.
DROP INDEX executions_running;

-- The last end whose execution was removed: numbers of ends are never used again.
CREATE TABLE removed (end_number INTEGER NOT NULL) STRICT;
INSERT INTO removed VALUES (0);
