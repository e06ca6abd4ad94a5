-- With the id in them, the indexes list what an account has from the oldest on without sorting; see the migration of
-- SQLite.

DROP INDEX agents_owner;

CREATE INDEX agents_owner ON agents (owner_id, id);

DROP INDEX packages_account;

CREATE INDEX packages_account ON packages (account_id, id);
