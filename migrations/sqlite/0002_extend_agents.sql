-- +goose Up
-- held: the operator withdrew it, its owner cannot undo that.
ALTER TABLE agents ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
-- What shows that its owner may list its address; see hub.Proof.
ALTER TABLE agents ADD COLUMN proof_method TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN proof_origin TEXT NOT NULL DEFAULT '' CHECK (length(proof_origin) <= 500);
ALTER TABLE agents ADD COLUMN proof_at INTEGER NOT NULL DEFAULT 0;
-- When it is contacted next, and how often in a row it did not answer.
ALTER TABLE agents ADD COLUMN check_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
DROP INDEX agents_live;
DROP INDEX agents_owner;
CREATE INDEX agents_owner ON agents (owner_id);
CREATE INDEX agents_check ON agents (check_at)
  WHERE deleted_at = 0 AND kind NOT IN ('builtin', 'link') AND status IN ('active', 'deprecated', 'draft');
-- The order in which they were due so far.
UPDATE agents SET check_at = live_at;

-- Every edit is a version that nothing changes any more.
ALTER TABLE agent_versions ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE agent_versions ADD COLUMN note TEXT NOT NULL DEFAULT '' CHECK (length(note) <= 1000);
ALTER TABLE agent_versions ADD COLUMN status TEXT NOT NULL DEFAULT 'active';
-- icon is also in the spec; here it says which pictures are in use.
ALTER TABLE agent_versions ADD COLUMN icon TEXT NOT NULL DEFAULT '' CHECK (length(icon) <= 100);
CREATE INDEX agent_versions_icon ON agent_versions (icon) WHERE icon <> '';
UPDATE agent_versions SET kind = (SELECT kind FROM agents WHERE agents.id = agent_versions.agent_id);
UPDATE agent_versions SET status = a.status FROM agents a WHERE a.id = agent_versions.agent_id AND a.version = agent_versions.version;

-- Accounts that may change an agent beside its owner.
CREATE TABLE agent_owners (
  agent_id   TEXT NOT NULL REFERENCES agents (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  added_at   INTEGER NOT NULL,
  PRIMARY KEY (agent_id, account_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_owners_account ON agent_owners (account_id);

-- An agent that its owner wants to give to somebody else.
CREATE TABLE agent_offers (
  agent_id   TEXT PRIMARY KEY REFERENCES agents (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_offers_account ON agent_offers (account_id);

-- Domains that an account was shown to control.
CREATE TABLE account_domains (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  domain     TEXT NOT NULL CHECK (length(domain) <= 260),
  proved_at  INTEGER NOT NULL,
  checked_at INTEGER NOT NULL,
  failures   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, domain)
) STRICT, WITHOUT ROWID;
CREATE INDEX account_domains_checked ON account_domains (checked_at);

-- Pictures of agents, as this portal drew them anew, by the hash of their bytes.
CREATE TABLE icons (
  hash       TEXT PRIMARY KEY CHECK (length(hash) <= 100),
  created_at INTEGER NOT NULL,
  data       BLOB NOT NULL CHECK (length(data) <= 131072)
) STRICT, WITHOUT ROWID;

-- history is the last contacts, packed; see store/agent_health.go.
CREATE TABLE agent_health (
  agent_id TEXT PRIMARY KEY REFERENCES agents (id),
  history  BLOB NOT NULL CHECK (length(history) <= 4096)
) STRICT, WITHOUT ROWID;

-- How an agent was used, a row a day (days since the epoch, UTC). A call
-- counts on the day it was made, also when it ends on a later one.
CREATE TABLE agent_days (
  agent_id  TEXT NOT NULL REFERENCES agents (id),
  day       INTEGER NOT NULL,
  calls     INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed    INTEGER NOT NULL DEFAULT 0,
  canceled  INTEGER NOT NULL DEFAULT 0,
  guests    INTEGER NOT NULL DEFAULT 0,
  ms        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (agent_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_agent ON tasks (agent_id, created_at);
-- A message asks whether a task waits for it; a long conversation has many
-- that have ended.
CREATE INDEX tasks_waiting ON tasks (conversation_id, agent_id, caller_id) WHERE state IN ('input_required', 'auth_required');
INSERT INTO agent_days (agent_id, day, calls, completed, failed, canceled, guests, ms)
  SELECT agent_id, created_at / 86400000, COUNT(*), SUM(state = 'completed'), SUM(state IN ('failed', 'rejected')), SUM(state = 'canceled'),
    SUM(caller_kind = 'guest'),
    SUM(CASE WHEN state IN ('completed', 'failed', 'rejected', 'canceled') THEN MAX(updated_at - created_at, 0) ELSE 0 END)
  FROM tasks GROUP BY agent_id, created_at / 86400000;

-- A checkpoint that is longer than the column of the table takes.
ALTER TABLE tasks ADD COLUMN long_checkpoint TEXT NOT NULL DEFAULT '' CHECK (length(long_checkpoint) <= 4194304);

-- What went over the wire in the owners' own calls, secrets removed.
CREATE TABLE agent_traces (
  agent_id TEXT NOT NULL REFERENCES agents (id),
  task_id  TEXT NOT NULL,
  n        INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  sent     INTEGER NOT NULL,
  head     TEXT NOT NULL CHECK (length(head) <= 8192),
  body     TEXT NOT NULL CHECK (length(body) <= 8192),
  size     INTEGER NOT NULL,
  PRIMARY KEY (agent_id, task_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE reports (
  id              TEXT PRIMARY KEY,
  agent_id        TEXT NOT NULL REFERENCES agents (id),
  reporter_kind   TEXT NOT NULL,
  reporter_id     TEXT NOT NULL,
  reporter_handle TEXT NOT NULL CHECK (length(reporter_handle) <= 300),
  reason          TEXT NOT NULL CHECK (length(reason) <= 40),
  text            TEXT NOT NULL CHECK (length(text) <= 4000),
  created_at      INTEGER NOT NULL,
  closed_at       INTEGER NOT NULL DEFAULT 0,
  closed_by       TEXT NOT NULL DEFAULT '',
  outcome         TEXT NOT NULL DEFAULT '' CHECK (length(outcome) <= 1000)
) STRICT, WITHOUT ROWID;
CREATE INDEX reports_open ON reports (closed_at, id);
CREATE INDEX reports_agent ON reports (agent_id, closed_at, id);

-- What an account is told: an agent that stopped answering, an offer, a report.
CREATE TABLE notices (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  kind       TEXT NOT NULL CHECK (length(kind) <= 40),
  subject    TEXT NOT NULL CHECK (length(subject) <= 200),
  text       TEXT NOT NULL CHECK (length(text) <= 1000),
  href       TEXT NOT NULL CHECK (length(href) <= 500),
  created_at INTEGER NOT NULL,
  read_at    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_account ON notices (account_id, id);
CREATE INDEX notices_unread ON notices (account_id, id) WHERE read_at = 0;

CREATE TABLE searches (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  title      TEXT NOT NULL CHECK (length(title) <= 500),
  query      TEXT NOT NULL CHECK (length(query) <= 2000),
  seen_at    INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX searches_account ON searches (account_id, id);

-- Tokens that the portal's own model used, a row a day and caller.
CREATE TABLE model_days (
  day    TEXT NOT NULL CHECK (length(day) = 10),
  who    TEXT NOT NULL CHECK (length(who) <= 100),
  tokens INTEGER NOT NULL,
  PRIMARY KEY (day, who)
) STRICT, WITHOUT ROWID;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
