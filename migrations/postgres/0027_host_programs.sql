-- The WebAssembly modules that accounts uploaded, and the rules of hosting; see the migration of SQLite.

CREATE TABLE module_bytes (
  hash TEXT COLLATE "C" PRIMARY KEY CHECK (length(hash) = 64),
  data BYTEA NOT NULL CHECK (length(data) <= 67108864)
);

CREATE TABLE modules (
  account_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  hash TEXT COLLATE "C" NOT NULL REFERENCES module_bytes (hash),
  name TEXT COLLATE "C" NOT NULL CHECK (length(name) <= 200),
  size BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, hash)
);

CREATE INDEX modules_hash ON modules (hash);

CREATE TABLE hosting (
  one BIGINT PRIMARY KEY CHECK (one = 1),
  rules TEXT COLLATE "C" NOT NULL CHECK (json_valid(rules))
);

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
  UNION ALL SELECT 'person', account_id, size + 300 FROM modules;

CREATE FUNCTION storage_module_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.account_id, NEW.size + 300, NEW.created_at);
  RETURN NULL;
END $$;

CREATE TRIGGER storage_module_new AFTER INSERT ON modules
  FOR EACH ROW EXECUTE FUNCTION storage_module_new();

CREATE FUNCTION storage_module_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.account_id, - OLD.size - 300, 0);
  RETURN NULL;
END $$;

CREATE TRIGGER storage_module_gone AFTER DELETE ON modules
  FOR EACH ROW EXECUTE FUNCTION storage_module_gone();

CREATE FUNCTION module_bytes_unused() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM module_bytes WHERE hash = OLD.hash AND NOT EXISTS (SELECT 1 FROM modules m WHERE m.hash = OLD.hash);
  RETURN NULL;
END $$;

CREATE TRIGGER module_bytes_unused AFTER DELETE ON modules
  FOR EACH ROW EXECUTE FUNCTION module_bytes_unused();
