-- +goose Up
-- Other portals, by their id or, before they answered, by their address. What
-- is known of how they are doing is JSON: nobody asks for parts of it.
CREATE TABLE peers (
  key      TEXT PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 300),
  facts    TEXT NOT NULL CHECK (json_valid(facts) AND length(facts) <= 16384),
  known_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The states that portals came into, the latest of each.
CREATE TABLE peer_changes (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  peer   TEXT NOT NULL,
  state  TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (length(reason) <= 1000),
  at     INTEGER NOT NULL
) STRICT;
CREATE INDEX peer_changes_peer ON peer_changes (peer, id);

-- What operators decided for all portals: one row or none.
CREATE TABLE peer_policy (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  policy TEXT NOT NULL CHECK (json_valid(policy))
) STRICT;

-- Decisions have a reason, and each the hash of itself and of the one before,
-- so that nobody changes or removes one unseen. Those from before this have
-- none.
ALTER TABLE audit ADD COLUMN why TEXT NOT NULL DEFAULT '' CHECK (length(why) <= 500);
ALTER TABLE audit ADD COLUMN hash BLOB NOT NULL DEFAULT x'';
CREATE INDEX audit_act ON audit (act, id);

-- +goose StatementBegin
CREATE TRIGGER audit_stays BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'the log of decisions is only added to');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_remains BEFORE DELETE ON audit BEGIN
  SELECT RAISE(ABORT, 'the log of decisions is only added to');
END;
-- +goose StatementEnd

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
