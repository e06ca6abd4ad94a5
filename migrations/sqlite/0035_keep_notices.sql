-- +goose Up
-- Kill notices of other portals: modules that they stopped. A notice outlives the record that it came with.
CREATE TABLE kill_notices (
  portal_id  TEXT NOT NULL,
  hash       TEXT NOT NULL CHECK (length(hash) = 64),
  host       TEXT NOT NULL, -- of the portal
  package    TEXT NOT NULL, -- name/version
  reason     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (portal_id, hash)
) STRICT, WITHOUT ROWID;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
