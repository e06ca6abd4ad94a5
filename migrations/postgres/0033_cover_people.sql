-- With the kind of the caller in it, the index answers without reading the tasks; see the migration of SQLite.

DROP INDEX tasks_people;

CREATE INDEX tasks_people ON tasks (created_at, agent_id, caller_id, caller_kind) WHERE caller_kind IN ('person', 'operator');
