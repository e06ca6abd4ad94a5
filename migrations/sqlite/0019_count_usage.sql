-- +goose Up
-- The calls of models by day, agent, caller and model.
CREATE TABLE usage_days (
  day         INTEGER NOT NULL, -- days since 1970, UTC
  agent_id    TEXT NOT NULL,    -- empty for an agent that was tried before its registration
  owner_id    TEXT NOT NULL,    -- the owner at the time
  person_kind TEXT NOT NULL,
  person_id   TEXT NOT NULL,    -- empty for guests and people of other portals
  model       TEXT NOT NULL,
  portal      INTEGER NOT NULL CHECK (portal IN (0, 1)), -- the portal's own model
  purpose     TEXT NOT NULL CHECK (purpose IN ('work', 'talk')),
  calls       INTEGER NOT NULL,
  estimated   INTEGER NOT NULL, -- calls without a report of the provider
  input       INTEGER NOT NULL, -- tokens
  output      INTEGER NOT NULL,
  cost        INTEGER NOT NULL, -- millionths of the currency
  PRIMARY KEY (day, agent_id, owner_id, person_kind, person_id, model, portal, purpose)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_person ON usage_days (person_id, day);
CREATE INDEX usage_days_owner ON usage_days (owner_id, day);

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
