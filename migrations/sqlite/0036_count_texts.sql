-- +goose Up
-- The texts that a search of a library looks through count for the person.
DROP VIEW storage_sums;
DROP VIEW storage_items;

CREATE VIEW storage_items AS
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
  UNION ALL SELECT 'person', person_id, octet_length(path) + 300 FROM library_versions
  UNION ALL SELECT 'person', person_id, octet_length(text) FROM library_texts;

CREATE VIEW storage_sums AS
  SELECT kind, id, SUM(bytes) AS bytes FROM (
    SELECT CASE WHEN kind IN ('person', 'operator') THEN 'account' WHEN kind = 'agent' THEN 'agent'
        WHEN kind IN ('guest', 'portal') AND instr(id, '/') > 0 THEN 'portal' WHEN kind = 'guest' THEN 'guest' ELSE '' END AS kind,
      CASE WHEN kind IN ('guest', 'portal') AND instr(id, '/') > 0 THEN substr(id, 1, instr(id, '/') - 1) ELSE id END AS id,
      bytes FROM storage_items
    UNION ALL SELECT 'account', a.owner_id, i.bytes FROM storage_items i JOIN agents a ON a.id = i.id
      WHERE i.kind = 'agent' AND a.owner_id IS NOT NULL
    UNION ALL SELECT 'address', s.place, i.bytes FROM storage_items i JOIN storage s ON s.kind = 'guest' AND s.id = i.id
      WHERE i.kind = 'guest' AND s.place <> ''
  ) WHERE kind <> '' AND id <> '' GROUP BY kind, id;

-- +goose StatementBegin
CREATE TRIGGER storage_library_text_new AFTER INSERT ON library_texts BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.person_id, octet_length(NEW.text),
    COALESCE((SELECT f.updated_at FROM library_files f WHERE f.person_id = NEW.person_id AND f.path = NEW.path), 0));
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_library_text_gone AFTER DELETE ON library_texts BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.person_id, - octet_length(OLD.text), 0);
END;
-- +goose StatementEnd

-- They were stored before today, so that they count in the total and not for the day.
UPDATE storage SET bytes = bytes + (SELECT SUM(octet_length(text)) FROM library_texts WHERE person_id = storage.id)
  WHERE kind = 'account' AND id IN (SELECT person_id FROM library_texts);

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
