-- +goose Up
-- Times are milliseconds since the epoch, UTC. Every string that comes from
-- outside has its length checked again here: the last line of defence.
CREATE TABLE portal (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  public_key BLOB NOT NULL,
  url        TEXT NOT NULL DEFAULT '' CHECK (length(url) <= 500),
  created_at INTEGER NOT NULL
) STRICT;

-- People and agents share one namespace; a name is never given away again.
CREATE TABLE names (
  name       TEXT PRIMARY KEY CHECK (length(name) BETWEEN 2 AND 40),
  kind       TEXT NOT NULL CHECK (kind IN ('account', 'agent')),
  ref        TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
  id            TEXT PRIMARY KEY,
  name          TEXT NOT NULL UNIQUE REFERENCES names (name),
  password_hash TEXT NOT NULL CHECK (length(password_hash) <= 300),
  email         TEXT NOT NULL DEFAULT '' CHECK (length(email) <= 254),
  operator      INTEGER NOT NULL DEFAULT 0,
  disabled_at   INTEGER NOT NULL DEFAULT 0,
  created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A credential is a hashed secret: a browser session (of an account or of a
-- guest), an API token, a reset link, an invitation, the operator's link.
CREATE TABLE credentials (
  id         TEXT PRIMARY KEY,
  hash       TEXT NOT NULL UNIQUE,
  kind       TEXT NOT NULL CHECK (kind IN ('session', 'guest', 'token', 'reset', 'invite', 'setup')),
  account_id TEXT REFERENCES accounts (id),
  label      TEXT NOT NULL DEFAULT '' CHECK (length(label) <= 200),
  scopes     TEXT NOT NULL DEFAULT '' CHECK (length(scopes) <= 500),
  created_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX credentials_account ON credentials (account_id, kind);
CREATE INDEX credentials_expiry ON credentials (expires_at);

CREATE TABLE agents (
  id             TEXT PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE REFERENCES names (name),
  kind           TEXT NOT NULL CHECK (length(kind) <= 20),
  owner_id       TEXT REFERENCES accounts (id),
  version        INTEGER NOT NULL,
  title          TEXT NOT NULL CHECK (length(title) <= 200),
  visibility     TEXT NOT NULL CHECK (visibility IN ('public', 'unlisted', 'private')),
  -- spec is the JSON of what a version says: description, endpoint, skills, …
  spec           TEXT NOT NULL CHECK (length(spec) <= 1048576),
  secret         BLOB CHECK (length(secret) <= 8192),
  status         TEXT NOT NULL DEFAULT 'active',
  status_message TEXT NOT NULL DEFAULT '' CHECK (length(status_message) <= 500),
  live_state     TEXT NOT NULL DEFAULT 'unknown',
  live_reason    TEXT NOT NULL DEFAULT '' CHECK (length(live_reason) <= 500),
  live_latency   INTEGER NOT NULL DEFAULT 0,
  live_at        INTEGER NOT NULL DEFAULT 0,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  deleted_at     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX agents_owner ON agents (owner_id, name);
CREATE INDEX agents_live ON agents (live_at) WHERE deleted_at = 0;

CREATE TABLE agent_versions (
  agent_id   TEXT NOT NULL REFERENCES agents (id),
  version    INTEGER NOT NULL,
  title      TEXT NOT NULL,
  visibility TEXT NOT NULL,
  spec       TEXT NOT NULL CHECK (length(spec) <= 1048576),
  author_id  TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  PRIMARY KEY (agent_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
  id         TEXT PRIMARY KEY,
  title      TEXT NOT NULL CHECK (length(title) <= 500),
  last_seq   INTEGER NOT NULL DEFAULT 0,
  head_hash  BLOB,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  kind            TEXT NOT NULL CHECK (kind IN ('person', 'guest', 'agent')),
  member_id       TEXT NOT NULL,
  handle          TEXT NOT NULL CHECK (length(handle) <= 300),
  role            TEXT NOT NULL DEFAULT 'member',
  read_seq        INTEGER NOT NULL DEFAULT 0,
  joined_at       INTEGER NOT NULL,
  left_at         INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (conversation_id, kind, member_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_of ON members (member_id, kind, conversation_id) WHERE left_at = 0;

CREATE TABLE messages (
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  seq             INTEGER NOT NULL CHECK (seq > 0),
  id              TEXT NOT NULL,
  sender_kind     TEXT NOT NULL,
  sender_id       TEXT NOT NULL,
  sender_handle   TEXT NOT NULL CHECK (length(sender_handle) <= 300),
  kind            TEXT NOT NULL,
  body            TEXT NOT NULL CHECK (length(body) <= 4194304),
  task_id         TEXT NOT NULL DEFAULT '',
  task_state      TEXT NOT NULL DEFAULT '',
  reason          TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 1000),
  created_at      INTEGER NOT NULL,
  hash            BLOB NOT NULL,
  PRIMARY KEY (conversation_id, seq)
) STRICT, WITHOUT ROWID;

-- client_id is unique per conversation and sender for ever.
CREATE TABLE client_ids (
  conversation_id TEXT NOT NULL,
  sender_id       TEXT NOT NULL,
  client_id       TEXT NOT NULL CHECK (length(client_id) <= 300),
  seq             INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, sender_id, client_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  id              TEXT PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  agent_id        TEXT NOT NULL REFERENCES agents (id),
  agent_handle    TEXT NOT NULL,
  caller_kind     TEXT NOT NULL,
  caller_id       TEXT NOT NULL,
  caller_handle   TEXT NOT NULL,
  message_seq     INTEGER NOT NULL,
  answer_seq      INTEGER NOT NULL DEFAULT 0,
  state           TEXT NOT NULL,
  reason          TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 1000),
  artifacts       TEXT NOT NULL DEFAULT '' CHECK (length(artifacts) <= 4194304),
  attempt         INTEGER NOT NULL DEFAULT 0,
  checkpoint      TEXT NOT NULL DEFAULT '' CHECK (length(checkpoint) <= 65536),
  face            TEXT NOT NULL DEFAULT '',
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_caller ON tasks (caller_id, caller_kind, id);
CREATE INDEX tasks_conversation ON tasks (conversation_id, agent_id, id);

-- The outbox decides: whoever acts on a change reads its rows here, written in
-- the same transaction as the change. fence is the lease's number; a row is
-- deleted by whoever holds the lease with that number.
CREATE TABLE outbox (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  topic      TEXT NOT NULL,
  ref        TEXT NOT NULL,
  fence      INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_topic ON outbox (topic, id);
CREATE UNIQUE INDEX outbox_ref ON outbox (topic, ref);

-- The operator's log of decisions.
CREATE TABLE audit (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  actor_kind TEXT NOT NULL,
  actor_id   TEXT NOT NULL,
  act        TEXT NOT NULL,
  subject    TEXT NOT NULL CHECK (length(subject) <= 500),
  created_at INTEGER NOT NULL
) STRICT;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
