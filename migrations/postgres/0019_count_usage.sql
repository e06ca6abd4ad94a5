-- The calls of models by day, agent, caller and model; see the migration of SQLite.

CREATE TABLE usage_days (
  day BIGINT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  owner_id TEXT COLLATE "C" NOT NULL,
  person_kind TEXT COLLATE "C" NOT NULL,
  person_id TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  portal BIGINT NOT NULL CHECK (portal IN (0, 1)),
  purpose TEXT COLLATE "C" NOT NULL CHECK (purpose IN ('work', 'talk')),
  calls BIGINT NOT NULL,
  estimated BIGINT NOT NULL,
  input BIGINT NOT NULL,
  output BIGINT NOT NULL,
  cost BIGINT NOT NULL,
  PRIMARY KEY (day, agent_id, owner_id, person_kind, person_id, model, portal, purpose)
);
CREATE INDEX usage_days_person ON usage_days (person_id, day);
CREATE INDEX usage_days_owner ON usage_days (owner_id, day);
