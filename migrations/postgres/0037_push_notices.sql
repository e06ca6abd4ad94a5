-- Browsers that get notices by their push service, and the notices that wait; see the migration of SQLite.

CREATE TABLE push_browsers (
  session_id TEXT COLLATE "C" PRIMARY KEY REFERENCES credentials (id) ON DELETE CASCADE,
  account_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  host TEXT COLLATE "C" NOT NULL CHECK (length(host) <= 300),
  secret BYTEA NOT NULL CHECK (length(secret) <= 4000),
  texts BIGINT NOT NULL DEFAULT 0,
  failures BIGINT NOT NULL DEFAULT 0,
  next_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE INDEX push_browsers_account ON push_browsers (account_id);

CREATE TABLE push_notices (
  notice_id TEXT COLLATE "C" NOT NULL REFERENCES notices (id) ON DELETE CASCADE,
  session_id TEXT COLLATE "C" NOT NULL REFERENCES push_browsers (session_id) ON DELETE CASCADE,
  PRIMARY KEY (notice_id, session_id)
);
CREATE INDEX push_notices_session ON push_notices (session_id, notice_id);
