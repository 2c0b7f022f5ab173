-- What an execution left behind. NULL in rows that an older codexec finished.

-- What it did to the directory it worked in: JSON, NULL when nothing.
ALTER TABLE executions ADD COLUMN changes TEXT;
-- The codes of the limits that it met without being stopped by them, separated by commas.
ALTER TABLE executions ADD COLUMN limits_met TEXT;
-- Where the program ended by itself and said that it had failed.
ALTER TABLE executions ADD COLUMN exit_code INTEGER;
-- How many pictures it showed.
ALTER TABLE executions ADD COLUMN images INTEGER;
