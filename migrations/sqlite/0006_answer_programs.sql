-- +goose Up
-- Whether a task's answer is a plain message rather than the outcome of work.
ALTER TABLE tasks ADD COLUMN direct INTEGER NOT NULL DEFAULT 0;

-- The conversation that a caller's first message opened, for those who ask
-- that sending it again opens no other.
CREATE TABLE first_asks (
  caller_id       TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  client_id       TEXT NOT NULL CHECK (length(client_id) <= 300),
  conversation_id TEXT NOT NULL,
  PRIMARY KEY (caller_id, agent_id, client_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX first_asks_rooms ON first_asks (conversation_id);
