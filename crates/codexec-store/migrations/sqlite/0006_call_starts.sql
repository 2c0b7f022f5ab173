-- The start of a tool call, counted from the start of its execution. NULL in older rows.
ALTER TABLE calls ADD COLUMN start_us INTEGER;
