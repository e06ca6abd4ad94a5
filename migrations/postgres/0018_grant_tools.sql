-- The decisions of people about the tools that agents use for them; see the migration of SQLite.

CREATE TABLE grants (
  id TEXT COLLATE "C" NOT NULL CHECK (length(id) = 26),
  person_kind TEXT COLLATE "C" NOT NULL CHECK (person_kind IN ('person', 'portal')),
  person_id TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  agent TEXT COLLATE "C" NOT NULL CHECK (length(agent) <= 300),
  tool TEXT COLLATE "C" NOT NULL CHECK (length(tool) BETWEEN 1 AND 200),
  target TEXT COLLATE "C" NOT NULL CHECK (length(target) <= 300),
  conversation_id TEXT COLLATE "C" NOT NULL,
  allowed BIGINT NOT NULL CHECK (allowed IN (0, 1)),
  calls BIGINT NOT NULL CHECK (calls >= 0),
  used BIGINT NOT NULL CHECK (used >= 0),
  until_at BIGINT NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  origin TEXT COLLATE "C" NOT NULL,
  needs TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (person_id, id),
  UNIQUE (person_id, agent_id, tool, target, conversation_id)
);
CREATE INDEX grants_agent ON grants (agent_id);
CREATE INDEX grants_conversation ON grants (conversation_id) WHERE conversation_id <> '';
