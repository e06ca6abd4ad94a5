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

-- The contents of files, which SQLite keeps in a folder. An upload writes parts before its hash is known;
-- parts of a blob that is not in blobs are remains of an upload that was broken off. A blob_id begins with
-- the time of the upload.

CREATE TABLE blobs (
  hash TEXT COLLATE "C" PRIMARY KEY,
  blob_id TEXT COLLATE "C" NOT NULL UNIQUE,
  size BIGINT NOT NULL,
  touched_at BIGINT NOT NULL
);

CREATE TABLE blob_parts (
  blob_id TEXT COLLATE "C" NOT NULL,
  part BIGINT NOT NULL,
  bytes BYTEA NOT NULL,
  PRIMARY KEY (blob_id, part)
);

-- Files are compressed already for the most part.
ALTER TABLE blob_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
