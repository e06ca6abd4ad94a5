-- The agents, owners and providers that take no work; see the migration of SQLite.

CREATE TABLE halts (
  kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('agent', 'owner', 'provider')),
  subject TEXT COLLATE "C" NOT NULL CHECK (length(subject) BETWEEN 1 AND 300),
  operator BIGINT NOT NULL CHECK (operator IN (0, 1)),
  name TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (kind, subject, operator)
);
