-- +goose Up
-- Agents of other portals that somebody here has asked. Conversations, tasks
-- and all that refers to agents refer to a row in agents: of these it is one of
-- kind 'peer' that says nothing, under a name that nobody can have, and what is
-- known of the agent is here. The row's id is made of the two ids in the
-- network, so that it is the same whenever it is made.
CREATE TABLE elsewhere (
  agent_id   TEXT PRIMARY KEY REFERENCES agents (id),
  network_id TEXT NOT NULL CHECK (length(network_id) BETWEEN 1 AND 100),
  portal_id  TEXT NOT NULL CHECK (length(portal_id) BETWEEN 1 AND 60),
  -- name@host was its handle when it was asked last.
  name       TEXT NOT NULL CHECK (length(name) BETWEEN 2 AND 40),
  host       TEXT NOT NULL CHECK (length(host) BETWEEN 1 AND 255),
  title      TEXT NOT NULL CHECK (length(title) <= 400),
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX elsewhere_handle ON elsewhere (name, host);

-- budget is what the work may lead to, in what it takes: see task.Budget.
ALTER TABLE tasks ADD COLUMN budget TEXT NOT NULL DEFAULT '' CHECK (length(budget) <= 100);
-- Work for people of other portals, which ends when theirs is shut out.
CREATE INDEX tasks_portals ON tasks (caller_id) WHERE caller_kind = 'portal' AND state IN ('submitted', 'working', 'input_required', 'auth_required');

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
