-- +goose Up
-- What may change what is published of an agent is noted in the outbox, topic
-- publish, in the same transaction, whatever statement it is: a change again
-- takes a new number, so that whoever acts on the old one leaves it. Agents
-- that nobody could find before or after are not noted.
-- +goose StatementBegin
CREATE TRIGGER agents_publish_new AFTER INSERT ON agents WHEN NEW.visibility = 'public'
BEGIN
  INSERT OR REPLACE INTO outbox (topic, ref, created_at) VALUES ('publish', NEW.id, NEW.updated_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agents_publish_change
AFTER UPDATE OF name, kind, owner_id, title, visibility, spec, status, status_message, held, proof_method, proof_origin, proof_at, deleted_at ON agents
WHEN OLD.visibility = 'public' OR NEW.visibility = 'public'
BEGIN
  INSERT OR REPLACE INTO outbox (topic, ref, created_at) VALUES ('publish', NEW.id, NEW.updated_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agents_publish_removed AFTER DELETE ON agents WHEN OLD.visibility = 'public'
BEGIN
  INSERT OR REPLACE INTO outbox (topic, ref, created_at) VALUES ('publish', OLD.id, OLD.updated_at);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER accounts_publish AFTER UPDATE OF disabled_at ON accounts WHEN OLD.disabled_at <> NEW.disabled_at
BEGIN
  INSERT OR REPLACE INTO outbox (topic, ref, created_at)
    SELECT 'publish', id, NEW.disabled_at FROM agents WHERE owner_id = NEW.id AND visibility = 'public' AND deleted_at = 0;
END;
-- +goose StatementEnd

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
