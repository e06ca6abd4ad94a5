-- +goose Up
-- The look of an account: its name and picture for others, and the choices of its pages.
CREATE TABLE profiles (
  account_id   TEXT PRIMARY KEY REFERENCES accounts (id),
  display_name TEXT NOT NULL DEFAULT '' CHECK (length(display_name) <= 80),
  shown        INTEGER NOT NULL DEFAULT 0, -- 1 if others see the display name, the picture and the packages
  theme        TEXT NOT NULL DEFAULT '' CHECK (theme IN ('', 'light', 'dark')),
  muted        TEXT NOT NULL DEFAULT '' CHECK (length(muted) <= 500), -- kinds of notices that are not stored, by spaces
  picture_hash TEXT NOT NULL DEFAULT '' CHECK (length(picture_hash) <= 100),
  updated_at   INTEGER NOT NULL,
  picture      BLOB CHECK (length(picture) <= 131072) -- PNG, last so that the other columns are read without it
) STRICT;

-- Counts the people that used an agent since a time.
CREATE INDEX tasks_people ON tasks (created_at, agent_id, caller_id) WHERE caller_kind IN ('person', 'operator');

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
