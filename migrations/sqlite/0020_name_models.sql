-- +goose Up
-- The named models of the portal and of accounts.
CREATE TABLE models (
  id           TEXT PRIMARY KEY CHECK (length(id) = 26),
  owner_id     TEXT NOT NULL, -- empty for the portal
  name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 40),
  provider     TEXT NOT NULL CHECK (provider IN ('openai', 'anthropic')),
  url          TEXT NOT NULL CHECK (length(url) <= 500),
  model        TEXT NOT NULL CHECK (length(model) BETWEEN 1 AND 200),
  fallback     TEXT NOT NULL CHECK (length(fallback) <= 40),
  price_input  INTEGER NOT NULL CHECK (price_input >= 0), -- millionths of the currency for a million tokens
  price_output INTEGER NOT NULL CHECK (price_output >= 0),
  secret       BLOB, -- the sealed key
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  UNIQUE (owner_id, name)
) STRICT, WITHOUT ROWID;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
