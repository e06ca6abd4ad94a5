-- The library of a person; see the migration of SQLite.

CREATE TABLE library_files (
  person_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  path TEXT COLLATE "C" NOT NULL CHECK (length(path) BETWEEN 1 AND 500),
  version BIGINT NOT NULL,
  hash TEXT COLLATE "C" REFERENCES files (hash),
  size BIGINT NOT NULL,
  media_type TEXT COLLATE "C" NOT NULL CHECK (length(media_type) <= 200),
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (person_id, path)
);

CREATE INDEX library_files_hash ON library_files (hash) WHERE hash IS NOT NULL;

CREATE TABLE library_versions (
  person_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  path TEXT COLLATE "C" NOT NULL CHECK (length(path) BETWEEN 1 AND 500),
  version BIGINT NOT NULL,
  hash TEXT COLLATE "C" REFERENCES files (hash),
  size BIGINT NOT NULL,
  media_type TEXT COLLATE "C" NOT NULL CHECK (length(media_type) <= 200),
  restores BIGINT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  agent TEXT COLLATE "C" NOT NULL CHECK (length(agent) <= 300),
  conversation_id TEXT COLLATE "C" NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (person_id, path, version)
);

CREATE INDEX library_versions_hash ON library_versions (hash) WHERE hash IS NOT NULL;

CREATE INDEX library_versions_task ON library_versions (task_id) WHERE task_id <> '';

CREATE TABLE library_texts (
  person_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  path TEXT COLLATE "C" NOT NULL CHECK (length(path) BETWEEN 1 AND 500),
  text TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (person_id, path)
);

CREATE TABLE library_shares (
  id TEXT COLLATE "C" PRIMARY KEY,
  person_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  path TEXT COLLATE "C" NOT NULL CHECK (length(path) BETWEEN 1 AND 500),
  version BIGINT NOT NULL,
  secret TEXT COLLATE "C" NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);

CREATE INDEX library_shares_file ON library_shares (person_id, path);

CREATE OR REPLACE VIEW storage_items AS
  SELECT CASE charged WHEN '' THEN sender_kind ELSE substr(charged, 1, instr(charged, ' ') - 1) END AS kind,
      CASE charged WHEN '' THEN sender_id ELSE substr(charged, instr(charged, ' ') + 1) END AS id,
      octet_length(body) + 600 AS bytes FROM messages
  UNION ALL SELECT caller_kind, caller_id, octet_length(via) + 800 FROM tasks
  UNION ALL SELECT CASE WHEN a.owner_id IS NULL THEN t.caller_kind ELSE 'agent' END,
      CASE WHEN a.owner_id IS NULL THEN t.caller_id ELSE t.agent_id END,
      octet_length(t.artifacts) + octet_length(t.checkpoint) + octet_length(t.long_checkpoint)
    FROM tasks t JOIN agents a ON a.id = t.agent_id
    WHERE t.artifacts <> '' OR t.checkpoint <> '' OR t.long_checkpoint <> ''
  UNION ALL SELECT 'agent', id, octet_length(spec) + COALESCE(octet_length(secret), 0) + 1000 FROM agents
  UNION ALL SELECT 'agent', agent_id, octet_length(spec) + octet_length(note) + 300 FROM agent_versions
  UNION ALL SELECT 'agent', s.agent_id, octet_length(r.document) + 500 FROM releases r JOIN servers s ON s.name = r.name
    WHERE s.agent_id IS NOT NULL
  UNION ALL SELECT CASE WHEN account_id IS NULL THEN 'guest' ELSE 'person' END, COALESCE(account_id, id),
      octet_length(label) + 500 FROM credentials WHERE account_id IS NOT NULL OR kind = 'guest'
  UNION ALL SELECT owner_kind, owner_id, octet_length(url) + octet_length(secret) + 800 FROM hooks
  UNION ALL SELECT o.owner_kind, o.owner_id, f.size + 300 FROM uploads o JOIN files f ON f.hash = o.hash
  UNION ALL SELECT 'person', account_id, octet_length(title) + octet_length(query) + 300 FROM searches
  UNION ALL SELECT creator_kind, creator_id, 500 FROM room_links
  UNION ALL SELECT reporter_kind, reporter_id, octet_length(text) + 500 FROM reports
  UNION ALL SELECT 'person', account_id, size + 300 FROM modules
  UNION ALL SELECT 'person', person_id, octet_length(text) + 300 FROM memories
  UNION ALL SELECT 'person', person_id, octet_length(path) + 300 FROM library_versions;

CREATE FUNCTION storage_library_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.person_id, octet_length(NEW.path) + 300, NEW.created_at);
  RETURN NULL;
END $$;

CREATE TRIGGER storage_library_new AFTER INSERT ON library_versions
  FOR EACH ROW EXECUTE FUNCTION storage_library_new();

CREATE FUNCTION storage_library_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.person_id, - octet_length(OLD.path) - 300, 0);
  RETURN NULL;
END $$;

CREATE TRIGGER storage_library_gone AFTER DELETE ON library_versions
  FOR EACH ROW EXECUTE FUNCTION storage_library_gone();
