-- The random salt of the commitment by which a message enters the hash chain; see the migration of SQLite.

ALTER TABLE messages ADD COLUMN salt BYTEA;
