-- +goose Up
-- The address group (/24 or /64) of the guest who asked, only while the task waits or runs: the scheduler
-- shares places between groups.
ALTER TABLE tasks ADD COLUMN caller_group TEXT NOT NULL DEFAULT '' CHECK (length(caller_group) <= 64);

-- Numbers that only grow, by name.
CREATE TABLE counters (
  name  TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 64),
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Fences were taken from the clock before, and would be above all numbers of the counter.
UPDATE outbox SET fence = 0;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
