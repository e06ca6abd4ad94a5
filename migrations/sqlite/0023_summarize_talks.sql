-- +goose Up
-- The summaries of the beginnings of long conversations, which models get in place of the messages.
CREATE TABLE summaries (
  conversation_id TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  caller_id       TEXT NOT NULL, -- the person behind the question, because not all see the same messages
  scope           TEXT NOT NULL, -- the messages that this person let the agent have (task.Call.Scope)
  up_to           INTEGER NOT NULL, -- seq of the last message in the summary
  text            TEXT NOT NULL CHECK (length(text) <= 8000),
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, agent_id, caller_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX summaries_agent ON summaries (agent_id);
CREATE INDEX summaries_caller ON summaries (caller_id);

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
