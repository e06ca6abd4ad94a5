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

-- Each message updates the row of its sender in storage. Without an index on the changed column, and with
-- room on the page, the server replaces the row in place (HOT); the few reads of the greatest rows sort.

DROP INDEX storage_greatest;
ALTER TABLE storage SET (fillfactor = 50);

-- count_storage is the trigger storage_count as a function, which triggers of frequent changes call
-- directly. It reads no other row for accounts and portals.
CREATE FUNCTION count_storage(kind text, id text, bytes bigint, at bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  added bigint := greatest($3, 0);
  owner text;
BEGIN
  IF $1 IN ('guest', 'portal') AND strpos($2, '/') > 0 THEN
    PERFORM add_storage('portal', substr($2, 1, strpos($2, '/') - 1), $3, $4 / 86400000, added);
  ELSIF $1 IN ('person', 'operator') THEN
    PERFORM add_storage('account', $2, $3, $4 / 86400000, added);
  ELSIF $1 IN ('agent', 'guest') THEN
    PERFORM add_storage($1, $2, $3, $4 / 86400000, added);
  END IF;
  IF $1 = 'agent' THEN
    SELECT owner_id INTO owner FROM agents WHERE agents.id = $2;
    PERFORM add_storage('account', owner, $3, $4 / 86400000, added);
  ELSIF $1 = 'guest' THEN
    SELECT place INTO owner FROM storage WHERE storage.kind = 'guest' AND storage.id = $2;
    PERFORM add_storage('address', owner, $3, $4 / 86400000, added);
  END IF;
END $$;

CREATE FUNCTION add_storage(kind text, id text, bytes bigint, day bigint, added bigint) RETURNS void LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
  IF $2 <> '' THEN
    INSERT INTO storage (kind, id, bytes, day, today) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (kind, id) DO UPDATE SET bytes = storage.bytes + excluded.bytes,
      today = CASE WHEN excluded.today = 0 OR excluded.day < storage.day THEN storage.today
        WHEN excluded.day = storage.day THEN storage.today + excluded.today ELSE excluded.today END,
      day = CASE WHEN excluded.today = 0 THEN storage.day ELSE greatest(storage.day, excluded.day) END;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION storage_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_storage(NEW.kind, NEW.id, NEW.bytes, NEW.at);
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION storage_message_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.charged = '' THEN
    PERFORM count_storage(NEW.sender_kind, NEW.sender_id, octet_length(NEW.body) + 600, NEW.created_at);
  ELSE
    PERFORM count_storage(substr(NEW.charged, 1, strpos(NEW.charged, ' ') - 1), substr(NEW.charged, strpos(NEW.charged, ' ') + 1),
      octet_length(NEW.body) + 600, (SELECT greatest(c.updated_at, NEW.created_at) FROM conversations c WHERE c.id = NEW.conversation_id));
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION storage_task_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM count_storage(NEW.caller_kind, NEW.caller_id, octet_length(NEW.via) + 800, NEW.created_at);
  RETURN NULL;
END $$;
