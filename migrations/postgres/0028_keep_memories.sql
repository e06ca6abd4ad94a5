-- The memories of agents about people; see the migration of SQLite.

CREATE TABLE memories (
  id TEXT COLLATE "C" PRIMARY KEY,
  person_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
  room_id TEXT COLLATE "C" NOT NULL,
  conversation_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  text TEXT COLLATE "C" NOT NULL CHECK (length(text) BETWEEN 1 AND 2000),
  distilled BIGINT NOT NULL CHECK (distilled IN (0, 1)),
  binding TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  used_at BIGINT NOT NULL
);

CREATE INDEX memories_person ON memories (person_id, id);

CREATE INDEX memories_place ON memories (person_id, agent_id, room_id, used_at);

CREATE INDEX memories_room ON memories (room_id, agent_id);

CREATE INDEX memories_agent ON memories (agent_id);

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
  UNION ALL SELECT 'person', person_id, octet_length(text) + 300 FROM memories;

CREATE FUNCTION storage_memory_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.person_id, octet_length(NEW.text) + 300, NEW.created_at);
  RETURN NULL;
END $$;

CREATE TRIGGER storage_memory_new AFTER INSERT ON memories
  FOR EACH ROW EXECUTE FUNCTION storage_memory_new();

CREATE FUNCTION storage_memory_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.person_id, - octet_length(OLD.text) - 300, 0);
  RETURN NULL;
END $$;

CREATE TRIGGER storage_memory_gone AFTER DELETE ON memories
  FOR EACH ROW EXECUTE FUNCTION storage_memory_gone();

CREATE FUNCTION storage_memory_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.person_id, octet_length(NEW.text) - octet_length(OLD.text), 0);
  RETURN NULL;
END $$;

CREATE TRIGGER storage_memory_text AFTER UPDATE OF text ON memories
  FOR EACH ROW EXECUTE FUNCTION storage_memory_text();
