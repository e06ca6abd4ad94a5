-- The packages of this portal and the stopped modules; see the migration of SQLite.

CREATE TABLE packages (
  id TEXT COLLATE "C" PRIMARY KEY,
  account_id TEXT COLLATE "C" NOT NULL REFERENCES accounts (id),
  author TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  manifest TEXT COLLATE "C" NOT NULL CHECK (json_valid(manifest)),
  readme TEXT COLLATE "C" NOT NULL,
  module TEXT COLLATE "C" NOT NULL CHECK (length(module) = 64),
  size BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('published', 'deprecated', 'withdrawn', 'killed')),
  note TEXT COLLATE "C" NOT NULL,
  downloads BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX packages_version ON packages (name, version);

CREATE INDEX packages_account ON packages (account_id);

CREATE TABLE kills (
  hash TEXT COLLATE "C" PRIMARY KEY CHECK (length(hash) = 64),
  reason TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);

ALTER TABLE modules ADD COLUMN package TEXT COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE modules ADD COLUMN portal TEXT COLLATE "C" NOT NULL DEFAULT '';
