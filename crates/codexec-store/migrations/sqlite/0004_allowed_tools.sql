-- What an execution was admitted with. NULL in rows that an older codexec wrote.

-- The tools it might call: a JSON list of lists of patterns. A call had to match one of each list.
ALTER TABLE executions ADD COLUMN allowed_tools TEXT;
-- What of codexec's own it might do beside what was its own, separated by commas; NULL when nothing.
ALTER TABLE executions ADD COLUMN grants TEXT;
