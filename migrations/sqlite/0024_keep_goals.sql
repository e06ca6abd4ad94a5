-- +goose Up
-- The goals that people give to teams of agents.
CREATE TABLE goals (
  id          TEXT PRIMARY KEY,
  owner_id    TEXT NOT NULL,
  owner       TEXT NOT NULL,
  key         TEXT NOT NULL, -- idempotency key of the request; the goal's own id for none
  goal        TEXT NOT NULL CHECK (length(goal) BETWEEN 1 AND 16384),
  state       TEXT NOT NULL CHECK (state IN ('forming', 'working', 'paused', 'concluded', 'failed', 'canceled')),
  reason      TEXT NOT NULL,
  open        INTEGER NOT NULL CHECK (open IN (0, 1)), -- 1 while the portal has work to do for it
  parent_id   TEXT NOT NULL, -- the goal for a task of which it works, empty for a goal of a person
  parent_task INTEGER NOT NULL,
  seq         INTEGER NOT NULL, -- of the last event
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  UNIQUE (owner_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX goals_owner ON goals (owner_id, parent_id, id);
CREATE INDEX goals_parent ON goals (parent_id, parent_task);
CREATE INDEX goals_open ON goals (open, owner_id);

-- The log of each goal: its state is computed from these events.
CREATE TABLE goal_events (
  goal_id TEXT NOT NULL,
  seq     INTEGER NOT NULL CHECK (seq >= 1),
  event   TEXT NOT NULL, -- JSON
  PRIMARY KEY (goal_id, seq)
) STRICT, WITHOUT ROWID;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
