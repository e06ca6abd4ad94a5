-- +goose Up
-- Up to which head what is held of a portal's agents adds up: its version and
-- hash, zero when some of it was let go since. turn counts how often it did:
-- each agent has the turn in which it was kept, so those of earlier turns were
-- covered by a head, and those of this one wait for it.
ALTER TABLE portals ADD COLUMN whole_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE portals ADD COLUMN whole_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE portals ADD COLUMN whole_hash BLOB;
ALTER TABLE portals ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;

-- A position that is that of the head was only ever set when all of it was here.
UPDATE portals SET turn = 1, whole_epoch = head_epoch, whole_seq = head_seq,
  whole_hash = (SELECT hash FROM said WHERE portal = portals.id AND type = 'head/1' AND about = '')
WHERE head_seq > 0 AND at_epoch = head_epoch AND at_seq = head_seq;
