-- The named models of the portal and of accounts; see the migration of SQLite.

CREATE TABLE models (
  id TEXT COLLATE "C" PRIMARY KEY CHECK (length(id) = 26),
  owner_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 40),
  provider TEXT COLLATE "C" NOT NULL CHECK (provider IN ('openai', 'anthropic')),
  url TEXT COLLATE "C" NOT NULL CHECK (length(url) <= 500),
  model TEXT COLLATE "C" NOT NULL CHECK (length(model) BETWEEN 1 AND 200),
  fallback TEXT COLLATE "C" NOT NULL CHECK (length(fallback) <= 40),
  price_input BIGINT NOT NULL CHECK (price_input >= 0),
  price_output BIGINT NOT NULL CHECK (price_output >= 0),
  secret BYTEA,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (owner_id, name)
);
