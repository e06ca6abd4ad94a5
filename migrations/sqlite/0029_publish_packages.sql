-- +goose Up
-- The versions of packages of this portal, which are hosted programs that other portals may run.
CREATE TABLE packages (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  author     TEXT NOT NULL,
  name       TEXT NOT NULL,
  version    TEXT NOT NULL,
  manifest   TEXT NOT NULL CHECK (json_valid(manifest)),
  readme     TEXT NOT NULL,
  module     TEXT NOT NULL CHECK (length(module) = 64),
  size       INTEGER NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('published', 'deprecated', 'withdrawn', 'killed')),
  note       TEXT NOT NULL,
  downloads  INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX packages_version ON packages (name, version);

CREATE INDEX packages_account ON packages (account_id);

-- Modules that an operator stopped.
CREATE TABLE kills (
  hash       TEXT PRIMARY KEY CHECK (length(hash) = 64),
  reason     TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The package that a module is from, as name/version, and the id of the portal that publishes it.
ALTER TABLE modules ADD COLUMN package TEXT NOT NULL DEFAULT '';

ALTER TABLE modules ADD COLUMN portal TEXT NOT NULL DEFAULT '';

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
