-- +goose Up
-- The agents that the work has passed, of this portal and others, separated by
-- spaces: one that would be asked by itself is not.
ALTER TABLE tasks ADD COLUMN via TEXT NOT NULL DEFAULT '' CHECK (length(via) <= 16384);
