-- +goose Up
-- The bounds of owners on the cost of models on one day.
CREATE TABLE ceilings (
  owner_id TEXT NOT NULL,
  agent_id TEXT NOT NULL, -- empty for all agents of the owner
  tokens   INTEGER NOT NULL CHECK (tokens >= 0), -- 0 for any number
  cost     INTEGER NOT NULL CHECK (cost >= 0),   -- millionths of the currency; 0 for any
  PRIMARY KEY (owner_id, agent_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ceilings_agent ON ceilings (agent_id);

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
