-- +goose Up
-- The mark of a database that is moved to another engine. A portal starts only
-- without the row, or with the state 'complete'.
CREATE TABLE database_move (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- moving, moved: the source before and after its copy was proved.
  -- incomplete, complete: the copy.
  state TEXT NOT NULL CHECK (state IN ('moving', 'moved', 'incomplete', 'complete')),
  -- move is the random id that the two databases of a move share.
  move TEXT NOT NULL,
  -- other names the other database, without a password.
  other TEXT NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;

-- The tables that were copied to this database, so that a move that was
-- interrupted goes on with the next.
CREATE TABLE moved_tables (
  name TEXT PRIMARY KEY,
  row_count INTEGER NOT NULL,
  sum TEXT NOT NULL,
  copied_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Words of Hangul are divided in another way than before: the messages are
-- indexed anew, in the background.
INSERT INTO said_words (said_words) VALUES ('delete-all');
DELETE FROM said;
UPDATE conversations SET words_seq = 0 WHERE words_seq > 0;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
