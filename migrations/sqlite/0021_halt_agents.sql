-- +goose Up
-- The agents that their owners paused, and agents, owners and providers that an operator stopped.
CREATE TABLE halts (
  kind       TEXT NOT NULL CHECK (kind IN ('agent', 'owner', 'provider')),
  subject    TEXT NOT NULL CHECK (length(subject) BETWEEN 1 AND 300), -- id of the agent or account, host of the provider
  operator   INTEGER NOT NULL CHECK (operator IN (0, 1)),
  name       TEXT NOT NULL,
  reason     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (kind, subject, operator)
) STRICT, WITHOUT ROWID;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
