-- +goose Up
-- Addresses that are told of events: a webhook of an account, or where the
-- caller of one task wants to be told of it (A2A's push notifications).
CREATE TABLE hooks (
  id            TEXT PRIMARY KEY,
  kind          TEXT NOT NULL CHECK (kind IN ('webhook', 'push')),
  owner_kind    TEXT NOT NULL,
  owner_id      TEXT NOT NULL,
  -- task_id, name and version are of push: name is the client's id for it.
  task_id       TEXT NOT NULL DEFAULT '',
  name          TEXT NOT NULL DEFAULT '' CHECK (length(name) <= 200),
  version       TEXT NOT NULL DEFAULT '',
  label         TEXT NOT NULL DEFAULT '' CHECK (length(label) <= 200),
  url           TEXT NOT NULL CHECK (length(url) <= 2048),
  host          TEXT NOT NULL CHECK (length(host) <= 300),
  events        TEXT NOT NULL DEFAULT '' CHECK (length(events) <= 500),
  scheme        TEXT NOT NULL DEFAULT '' CHECK (length(scheme) <= 40),
  secret        BLOB NOT NULL CHECK (length(secret) <= 16384),
  state         TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'failed')),
  reason        TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 500),
  -- How many events wait, and how many were not kept because too many did.
  waiting       INTEGER NOT NULL DEFAULT 0,
  missed        INTEGER NOT NULL DEFAULT 0,
  -- Attempts in a row that failed, since when, and when the next is due.
  failures      INTEGER NOT NULL DEFAULT 0,
  failing_since INTEGER NOT NULL DEFAULT 0,
  next_at       INTEGER NOT NULL DEFAULT 0,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX hooks_owner ON hooks (owner_id, id) WHERE kind = 'webhook';
CREATE UNIQUE INDEX hooks_task ON hooks (task_id, name) WHERE kind = 'push';
CREATE INDEX hooks_due ON hooks (next_at) WHERE waiting > 0 AND state = 'active';

-- The outbox of hooks: written with the change that is told, deleted when its
-- hook took it. facts are ids and states; texts are read when it is sent, with
-- the rights that its owner has then.
CREATE TABLE hook_events (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  hook_id    TEXT NOT NULL REFERENCES hooks (id),
  event_id   TEXT NOT NULL,
  type       TEXT NOT NULL CHECK (length(type) <= 40),
  facts      TEXT NOT NULL CHECK (length(facts) <= 8192),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX hook_events_hook ON hook_events (hook_id, id);

-- The last attempts of each webhook, for its owner.
CREATE TABLE hook_attempts (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  hook_id  TEXT NOT NULL REFERENCES hooks (id),
  event_id TEXT NOT NULL,
  type     TEXT NOT NULL,
  at       INTEGER NOT NULL,
  status   INTEGER NOT NULL,
  took     INTEGER NOT NULL,
  error    TEXT NOT NULL CHECK (length(error) <= 500)
) STRICT;
CREATE INDEX hook_attempts_hook ON hook_attempts (hook_id, id);

-- pushed: its caller wants to be told. Who ends a task has read it anyway.
ALTER TABLE tasks ADD COLUMN pushed INTEGER NOT NULL DEFAULT 0;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
