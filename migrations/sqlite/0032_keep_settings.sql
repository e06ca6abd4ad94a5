-- +goose Up
-- Settings that operators made in the browser. They apply where no flag or environment variable is given.
CREATE TABLE settings (
  name     TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 40),
  value    TEXT NOT NULL CHECK (length(value) <= 20000),
  previous TEXT CHECK (length(previous) <= 20000), -- NULL if it was not set before
  set_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What the portal counted at the end of each day, UTC, for the plots of the operator.
CREATE TABLE daily_figures (
  day   INTEGER NOT NULL, -- days since 1970
  name  TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 40),
  value INTEGER NOT NULL,
  PRIMARY KEY (day, name)
) STRICT, WITHOUT ROWID;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
