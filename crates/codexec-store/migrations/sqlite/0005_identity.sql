-- The identity of everything that is stored. Older versions served the local user only.

UPDATE executions SET principal = 'local' WHERE principal IS NULL;

-- The edge that accepted the request. NULL in rows that an older codexec wrote.
ALTER TABLE executions ADD COLUMN edge TEXT;
ALTER TABLE sessions ADD COLUMN edge TEXT;
ALTER TABLE session_packages ADD COLUMN principal TEXT NOT NULL DEFAULT 'local';
ALTER TABLE session_packages ADD COLUMN edge TEXT;

-- Installations of packages that all executions share, and who requested them.
CREATE TABLE shared_packages (
    language  TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    version   TEXT,
    is_ok     INTEGER NOT NULL,
    principal TEXT    NOT NULL,
    edge      TEXT,
    at_ms     INTEGER NOT NULL
) STRICT;

-- A search without a text also filters by the principal, and must not read long rows for that.
DROP INDEX executions_seek;
CREATE INDEX executions_seek
ON executions (end_number, started_ms, language, kind, session, principal)
WHERE end_number IS NOT NULL;
