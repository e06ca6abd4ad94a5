-- The bounds of owners on the cost of models on one day; see the migration of SQLite.

CREATE TABLE ceilings (
  owner_id TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  tokens BIGINT NOT NULL CHECK (tokens >= 0),
  cost BIGINT NOT NULL CHECK (cost >= 0),
  PRIMARY KEY (owner_id, agent_id)
);
CREATE INDEX ceilings_agent ON ceilings (agent_id);
