-- +goose Up
-- The random salt of the commitment by which a message enters the hash chain of its conversation: NULL for messages
-- that are older than salts, one byte once the message was deleted and the salt destroyed.
ALTER TABLE messages ADD COLUMN salt BLOB;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
