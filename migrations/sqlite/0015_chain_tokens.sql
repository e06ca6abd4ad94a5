-- +goose Up
-- The token that made a token: the one that was made ends with its maker. Tokens
-- of people's sessions and from before this have none.
ALTER TABLE credentials ADD COLUMN parent TEXT REFERENCES credentials (id) ON DELETE CASCADE;
CREATE INDEX credentials_parent ON credentials (parent) WHERE parent IS NOT NULL;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
