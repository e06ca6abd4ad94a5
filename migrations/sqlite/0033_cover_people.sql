-- +goose Up
-- With the kind of the caller in it, the index answers without reading the tasks, which are long.
DROP INDEX tasks_people;

CREATE INDEX tasks_people ON tasks (created_at, agent_id, caller_id, caller_kind) WHERE caller_kind IN ('person', 'operator');

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
