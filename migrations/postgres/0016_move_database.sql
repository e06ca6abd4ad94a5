-- The mark of a database that is moved to another engine; see the migration of SQLite.

CREATE TABLE database_move (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('moving', 'moved', 'incomplete', 'complete')),
  move TEXT COLLATE "C" NOT NULL,
  other TEXT COLLATE "C" NOT NULL,
  changed_at BIGINT NOT NULL
);

CREATE TABLE moved_tables (
  name TEXT COLLATE "C" PRIMARY KEY,
  row_count BIGINT NOT NULL,
  sum TEXT COLLATE "C" NOT NULL,
  copied_at BIGINT NOT NULL
);
