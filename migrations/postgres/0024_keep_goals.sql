-- The goals of people and the logs of their teams; see the migration of SQLite.

CREATE TABLE goals (
  id TEXT COLLATE "C" PRIMARY KEY,
  owner_id TEXT COLLATE "C" NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  goal TEXT COLLATE "C" NOT NULL CHECK (length(goal) BETWEEN 1 AND 16384),
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('forming', 'working', 'paused', 'concluded', 'failed', 'canceled')),
  reason TEXT COLLATE "C" NOT NULL,
  open BIGINT NOT NULL CHECK (open IN (0, 1)),
  parent_id TEXT COLLATE "C" NOT NULL,
  parent_task BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (owner_id, key)
);
CREATE INDEX goals_owner ON goals (owner_id, parent_id, id);
CREATE INDEX goals_parent ON goals (parent_id, parent_task);
CREATE INDEX goals_open ON goals (open, owner_id);

CREATE TABLE goal_events (
  goal_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL CHECK (seq >= 1),
  event TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (goal_id, seq)
);
