-- +goose Up
-- Browsers that get notices by their push service. They end with the session.
CREATE TABLE push_browsers (
  session_id TEXT PRIMARY KEY REFERENCES credentials (id) ON DELETE CASCADE,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  host       TEXT NOT NULL CHECK (length(host) <= 300), -- of the push service
  secret     BLOB NOT NULL CHECK (length(secret) <= 4000), -- sealed address and keys
  texts      INTEGER NOT NULL DEFAULT 0, -- 1 if the text of notices is sent
  failures   INTEGER NOT NULL DEFAULT 0, -- failed attempts in a row
  next_at    INTEGER NOT NULL DEFAULT 0, -- no attempt before
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX push_browsers_account ON push_browsers (account_id);

-- Notices that wait to be sent to a browser.
CREATE TABLE push_notices (
  notice_id  TEXT NOT NULL REFERENCES notices (id) ON DELETE CASCADE,
  session_id TEXT NOT NULL REFERENCES push_browsers (session_id) ON DELETE CASCADE,
  PRIMARY KEY (notice_id, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX push_notices_session ON push_notices (session_id, notice_id);

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
