-- +goose Up
-- With the id in them, the indexes list what an account has from the oldest on without sorting.
DROP INDEX agents_owner;
CREATE INDEX agents_owner ON agents (owner_id, id);
DROP INDEX packages_account;
CREATE INDEX packages_account ON packages (account_id, id);

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
