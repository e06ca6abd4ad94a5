-- Kill notices of other portals; see the migration of SQLite.

CREATE TABLE kill_notices (
  portal_id TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL CHECK (length(hash) = 64),
  host TEXT COLLATE "C" NOT NULL,
  package TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (portal_id, hash)
);
