-- +goose Up
-- The decisions of people about the tools that agents use for them.
CREATE TABLE grants (
  -- The person chose the id, so that it is unique for the person only.
  id              TEXT NOT NULL CHECK (length(id) = 26),
  -- A person of this portal, or of another one.
  person_kind     TEXT NOT NULL CHECK (person_kind IN ('person', 'portal')),
  person_id       TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  agent           TEXT NOT NULL CHECK (length(agent) <= 300),
  tool            TEXT NOT NULL CHECK (length(tool) BETWEEN 1 AND 200),
  target          TEXT NOT NULL CHECK (length(target) <= 300),
  -- Empty for a decision about all conversations.
  conversation_id TEXT NOT NULL,
  allowed         INTEGER NOT NULL CHECK (allowed IN (0, 1)),
  -- calls is 0 if any number is allowed.
  calls           INTEGER NOT NULL CHECK (calls >= 0),
  used            INTEGER NOT NULL CHECK (used >= 0),
  until_at        INTEGER NOT NULL,
  -- The facts about the agent for which the decision was made.
  owner           TEXT NOT NULL,
  origin          TEXT NOT NULL,
  needs           TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (person_id, id),
  UNIQUE (person_id, agent_id, tool, target, conversation_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_agent ON grants (agent_id);
CREATE INDEX grants_conversation ON grants (conversation_id) WHERE conversation_id <> '';

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
