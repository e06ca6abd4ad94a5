-- The look of accounts, and an index of the people that used agents; see the migration of SQLite.

CREATE TABLE profiles (
  account_id TEXT COLLATE "C" PRIMARY KEY REFERENCES accounts (id),
  display_name TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (length(display_name) <= 80),
  shown BIGINT NOT NULL DEFAULT 0,
  theme TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (theme IN ('', 'light', 'dark')),
  muted TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (length(muted) <= 500),
  picture_hash TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (length(picture_hash) <= 100),
  updated_at BIGINT NOT NULL,
  picture BYTEA CHECK (length(picture) <= 131072)
);

CREATE INDEX tasks_people ON tasks (created_at, agent_id, caller_id) WHERE caller_kind IN ('person', 'operator');
