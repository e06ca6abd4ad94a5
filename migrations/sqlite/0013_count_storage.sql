-- +goose Up
-- Bytes stored for an account, an agent, a guest, the network of guests (kind 'address') or another
-- portal. bytes falls when data is deleted; today has the bytes added on day (UTC, days since 1970) and
-- never falls. place is the network of a guest, '' if it is not known.
CREATE TABLE storage (
  kind  TEXT NOT NULL CHECK (kind IN ('account', 'agent', 'guest', 'address', 'portal')),
  id    TEXT NOT NULL CHECK (length(id) BETWEEN 1 AND 300),
  bytes INTEGER NOT NULL,
  day   INTEGER NOT NULL DEFAULT 0,
  today INTEGER NOT NULL DEFAULT 0,
  place TEXT NOT NULL DEFAULT '' CHECK (length(place) <= 100),
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX storage_greatest ON storage (kind, bytes);

-- The member that a message counts for, as its kind, a space and its id; '' if it counts for its sender.
ALTER TABLE messages ADD COLUMN charged TEXT NOT NULL DEFAULT '' CHECK (length(charged) <= 300);

-- Rows that a change of an account, agent, guest or portal inserts here are added to the counters.
CREATE VIEW storage_changes AS SELECT '' AS kind, '' AS id, 0 AS bytes, 0 AS at;

-- +goose StatementBegin
CREATE TRIGGER storage_count INSTEAD OF INSERT ON storage_changes BEGIN
  INSERT INTO storage (kind, id, bytes, day, today)
    SELECT kind, id, NEW.bytes, NEW.at / 86400000, max(NEW.bytes, 0) FROM (
      SELECT CASE WHEN NEW.kind IN ('person', 'operator') THEN 'account' WHEN NEW.kind = 'agent' THEN 'agent'
          WHEN NEW.kind IN ('guest', 'portal') AND instr(NEW.id, '/') > 0 THEN 'portal'
          WHEN NEW.kind = 'guest' THEN 'guest' ELSE '' END AS kind,
        CASE WHEN NEW.kind IN ('guest', 'portal') AND instr(NEW.id, '/') > 0 THEN substr(NEW.id, 1, instr(NEW.id, '/') - 1)
          ELSE NEW.id END AS id
      UNION ALL SELECT 'account', owner_id FROM agents WHERE NEW.kind = 'agent' AND id = NEW.id AND owner_id IS NOT NULL
      UNION ALL SELECT 'address', place FROM storage WHERE NEW.kind = 'guest' AND kind = 'guest' AND id = NEW.id AND place <> ''
    ) WHERE kind <> '' AND id <> ''
    ON CONFLICT (kind, id) DO UPDATE SET bytes = bytes + excluded.bytes,
      today = CASE WHEN excluded.today = 0 OR excluded.day < day THEN today WHEN excluded.day = day THEN today + excluded.today
        ELSE excluded.today END,
      day = CASE WHEN excluded.today = 0 THEN day ELSE max(day, excluded.day) END;
END;
-- +goose StatementEnd

-- Every stored piece with the bytes that it counts: its text, and a constant for its row and the indexes.
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
  UNION ALL SELECT reporter_kind, reporter_id, octet_length(text) + 500 FROM reports;

-- The counters as they follow from the pieces; verify compares them with storage.
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

INSERT INTO storage (kind, id, bytes) SELECT kind, id, bytes FROM storage_sums;

-- +goose StatementBegin
CREATE TRIGGER storage_message_new AFTER INSERT ON messages BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (
    CASE NEW.charged WHEN '' THEN NEW.sender_kind ELSE substr(NEW.charged, 1, instr(NEW.charged, ' ') - 1) END,
    CASE NEW.charged WHEN '' THEN NEW.sender_id ELSE substr(NEW.charged, instr(NEW.charged, ' ') + 1) END,
    octet_length(NEW.body) + 600, CASE NEW.charged WHEN '' THEN NEW.created_at ELSE (SELECT max(c.updated_at, NEW.created_at) FROM conversations c WHERE c.id = NEW.conversation_id) END);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_message_change AFTER UPDATE OF body ON messages BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (
    CASE NEW.charged WHEN '' THEN NEW.sender_kind ELSE substr(NEW.charged, 1, instr(NEW.charged, ' ') - 1) END,
    CASE NEW.charged WHEN '' THEN NEW.sender_id ELSE substr(NEW.charged, instr(NEW.charged, ' ') + 1) END,
    octet_length(NEW.body) - octet_length(OLD.body), NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_message_gone AFTER DELETE ON messages BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (
    CASE OLD.charged WHEN '' THEN OLD.sender_kind ELSE substr(OLD.charged, 1, instr(OLD.charged, ' ') - 1) END,
    CASE OLD.charged WHEN '' THEN OLD.sender_id ELSE substr(OLD.charged, instr(OLD.charged, ' ') + 1) END,
    - octet_length(OLD.body) - 600, 0);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_task_new AFTER INSERT ON tasks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.caller_kind, NEW.caller_id, octet_length(NEW.via) + 800, NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_task_via AFTER UPDATE OF via ON tasks WHEN NEW.via <> OLD.via BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.caller_kind, NEW.caller_id, octet_length(NEW.via) - octet_length(OLD.via), NEW.updated_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_outcome_new AFTER INSERT ON tasks WHEN NEW.artifacts <> '' OR NEW.checkpoint <> '' OR NEW.long_checkpoint <> '' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT CASE WHEN owner_id IS NULL THEN NEW.caller_kind ELSE 'agent' END,
      CASE WHEN owner_id IS NULL THEN NEW.caller_id ELSE id END, octet_length(NEW.artifacts) + octet_length(NEW.checkpoint) + octet_length(NEW.long_checkpoint), NEW.updated_at
    FROM agents WHERE id = NEW.agent_id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_outcome_change AFTER UPDATE OF artifacts, checkpoint, long_checkpoint ON tasks WHEN NEW.artifacts <> '' OR NEW.checkpoint <> '' OR NEW.long_checkpoint <> '' OR OLD.artifacts <> '' OR OLD.checkpoint <> '' OR OLD.long_checkpoint <> '' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT CASE WHEN owner_id IS NULL THEN NEW.caller_kind ELSE 'agent' END,
      CASE WHEN owner_id IS NULL THEN NEW.caller_id ELSE id END, octet_length(NEW.artifacts) + octet_length(NEW.checkpoint) + octet_length(NEW.long_checkpoint) - octet_length(OLD.artifacts) - octet_length(OLD.checkpoint) - octet_length(OLD.long_checkpoint), NEW.updated_at
    FROM agents WHERE id = NEW.agent_id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_task_gone AFTER DELETE ON tasks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (OLD.caller_kind, OLD.caller_id, - octet_length(OLD.via) - 800, 0);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_outcome_gone AFTER DELETE ON tasks WHEN OLD.artifacts <> '' OR OLD.checkpoint <> '' OR OLD.long_checkpoint <> '' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT CASE WHEN owner_id IS NULL THEN OLD.caller_kind ELSE 'agent' END,
      CASE WHEN owner_id IS NULL THEN OLD.caller_id ELSE id END, - octet_length(OLD.artifacts) - octet_length(OLD.checkpoint) - octet_length(OLD.long_checkpoint), 0
    FROM agents WHERE id = OLD.agent_id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_agent_new AFTER INSERT ON agents BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', NEW.id, octet_length(NEW.spec) + COALESCE(octet_length(NEW.secret), 0) + 1000, NEW.updated_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_agent_change AFTER UPDATE OF owner_id, spec, secret ON agents BEGIN
  -- The move to the new owner comes first, because the change below counts for the new owner.
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT 'person', OLD.owner_id, - bytes, 0 FROM storage
    WHERE kind = 'agent' AND id = NEW.id AND OLD.owner_id IS NOT NULL AND NEW.owner_id IS NOT OLD.owner_id;
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT 'person', NEW.owner_id, bytes, 0 FROM storage
    WHERE kind = 'agent' AND id = NEW.id AND NEW.owner_id IS NOT NULL AND NEW.owner_id IS NOT OLD.owner_id;
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', NEW.id, octet_length(NEW.spec) + COALESCE(octet_length(NEW.secret), 0) - octet_length(OLD.spec) - COALESCE(octet_length(OLD.secret), 0), NEW.updated_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_version_new AFTER INSERT ON agent_versions BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', NEW.agent_id, octet_length(NEW.spec) + octet_length(NEW.note) + 300, NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_version_change AFTER UPDATE OF spec, note ON agent_versions BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', NEW.agent_id, octet_length(NEW.spec) + octet_length(NEW.note) - octet_length(OLD.spec) - octet_length(OLD.note), NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_version_gone AFTER DELETE ON agent_versions BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', OLD.agent_id, - octet_length(OLD.spec) - octet_length(OLD.note) - 300, 0);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_release_new AFTER INSERT ON releases BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT 'agent', agent_id, octet_length(NEW.document) + 500, NEW.published_at FROM servers WHERE name = NEW.name AND agent_id IS NOT NULL;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_release_change AFTER UPDATE OF document ON releases BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT 'agent', agent_id, octet_length(NEW.document) - octet_length(OLD.document), NEW.updated_at FROM servers WHERE name = NEW.name AND agent_id IS NOT NULL;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_release_gone AFTER DELETE ON releases BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT 'agent', agent_id, - octet_length(OLD.document) - 500, 0 FROM servers WHERE name = OLD.name AND agent_id IS NOT NULL;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_server_owner AFTER UPDATE OF agent_id ON servers WHEN NEW.agent_id IS NOT OLD.agent_id BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT 'agent', OLD.agent_id, - COALESCE(SUM(octet_length(document) + 500), 0), 0 FROM releases
    WHERE name = OLD.name AND OLD.agent_id IS NOT NULL;
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT 'agent', NEW.agent_id, COALESCE(SUM(octet_length(document) + 500), 0), 0 FROM releases
    WHERE name = NEW.name AND NEW.agent_id IS NOT NULL;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_credential_new AFTER INSERT ON credentials WHEN NEW.account_id IS NOT NULL OR NEW.kind = 'guest' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (CASE WHEN NEW.account_id IS NULL THEN 'guest' ELSE 'person' END, COALESCE(NEW.account_id, NEW.id), octet_length(NEW.label) + 500, NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_credential_gone AFTER DELETE ON credentials WHEN OLD.account_id IS NOT NULL OR OLD.kind = 'guest' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (CASE WHEN OLD.account_id IS NULL THEN 'guest' ELSE 'person' END, COALESCE(OLD.account_id, OLD.id), - octet_length(OLD.label) - 500, 0);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_hook_new AFTER INSERT ON hooks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.owner_kind, NEW.owner_id, octet_length(NEW.url) + octet_length(NEW.secret) + 800, NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_hook_change AFTER UPDATE OF url, secret ON hooks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.owner_kind, NEW.owner_id, octet_length(NEW.url) + octet_length(NEW.secret) - octet_length(OLD.url) - octet_length(OLD.secret), NEW.updated_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_hook_gone AFTER DELETE ON hooks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (OLD.owner_kind, OLD.owner_id, - octet_length(OLD.url) - octet_length(OLD.secret) - 800, 0);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_upload_new AFTER INSERT ON uploads BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT NEW.owner_kind, NEW.owner_id, size + 300, NEW.created_at FROM files WHERE hash = NEW.hash;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_upload_gone AFTER DELETE ON uploads BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT OLD.owner_kind, OLD.owner_id, - size - 300, 0 FROM files WHERE hash = OLD.hash;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_search_new AFTER INSERT ON searches BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.account_id, octet_length(NEW.title) + octet_length(NEW.query) + 300, NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_search_gone AFTER DELETE ON searches BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.account_id, - octet_length(OLD.title) - octet_length(OLD.query) - 300, 0);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_link_new AFTER INSERT ON room_links BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.creator_kind, NEW.creator_id, 500, NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_link_gone AFTER DELETE ON room_links BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (OLD.creator_kind, OLD.creator_id, -500, 0);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_report_new AFTER INSERT ON reports BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.reporter_kind, NEW.reporter_id, octet_length(NEW.text) + 500, NEW.created_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER storage_report_gone AFTER DELETE ON reports BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (OLD.reporter_kind, OLD.reporter_id, - octet_length(OLD.text) - 500, 0);
END;
-- +goose StatementEnd

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
