-- Settings of operators and figures of days; see the migration of SQLite.

CREATE TABLE settings (
  name TEXT COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 40),
  value TEXT COLLATE "C" NOT NULL CHECK (length(value) <= 20000),
  previous TEXT COLLATE "C" CHECK (length(previous) <= 20000),
  set_at BIGINT NOT NULL
);

CREATE TABLE daily_figures (
  day BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 40),
  value BIGINT NOT NULL,
  PRIMARY KEY (day, name)
);
