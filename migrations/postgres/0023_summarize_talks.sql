-- The summaries of the beginnings of long conversations; see the migration of SQLite.

CREATE TABLE summaries (
  conversation_id TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  caller_id TEXT COLLATE "C" NOT NULL,
  scope TEXT COLLATE "C" NOT NULL,
  up_to BIGINT NOT NULL,
  text TEXT COLLATE "C" NOT NULL CHECK (length(text) <= 8000),
  created_at BIGINT NOT NULL,
  PRIMARY KEY (conversation_id, agent_id, caller_id)
);
CREATE INDEX summaries_agent ON summaries (agent_id);
CREATE INDEX summaries_caller ON summaries (caller_id);
