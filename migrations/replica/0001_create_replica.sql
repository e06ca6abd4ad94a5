-- +goose Up
-- Whose replica this is; two portals never share one.
CREATE TABLE owner (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  portal  TEXT NOT NULL,
  network TEXT NOT NULL
);

-- One row for each portal that ever said something. It is never deleted: the
-- versions in it must not be forgotten.
CREATE TABLE portals (
  id           INTEGER PRIMARY KEY,
  portal       TEXT NOT NULL UNIQUE,
  quarantined  INTEGER NOT NULL DEFAULT 0,
  -- the newest head that was ever kept
  head_epoch   INTEGER NOT NULL DEFAULT 0,
  head_seq     INTEGER NOT NULL DEFAULT 0,
  -- 0 unless it is held
  head_issued  INTEGER NOT NULL DEFAULT 0,
  head_expires INTEGER NOT NULL DEFAULT 0,
  head_count   INTEGER NOT NULL DEFAULT 0,
  -- agents that are held and not deleted; rows in agents; bytes of all
  agents       INTEGER NOT NULL DEFAULT 0,
  slots        INTEGER NOT NULL DEFAULT 0,
  bytes        INTEGER NOT NULL DEFAULT 0,
  -- how far its sync got
  at_epoch     INTEGER NOT NULL DEFAULT 0,
  at_seq       INTEGER NOT NULL DEFAULT 0
);

-- The newest record of each slot of an agent. n is its place in wires, NULL
-- when only its version is remembered.
CREATE TABLE agents (
  portal  INTEGER NOT NULL,
  akey    BLOB NOT NULL,
  epoch   INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  hash    BLOB NOT NULL,
  until   INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  signer  TEXT NOT NULL,
  gone    INTEGER NOT NULL, -- a tombstone
  size    INTEGER NOT NULL, -- bytes of the wire, 0 without
  n       INTEGER,
  PRIMARY KEY (portal, akey)
) WITHOUT ROWID;

CREATE INDEX agents_log ON agents (portal, epoch, seq, n) WHERE n IS NOT NULL;

-- The records of agents as they travel, apart from what is asked for far more
-- often.
CREATE TABLE wires (
  n    INTEGER PRIMARY KEY,
  gone INTEGER NOT NULL,
  wire BLOB NOT NULL
);

-- The newest record of every other slot, by the number of its arrival. The
-- version of cards and heads is remembered for ever: until is 0.
CREATE TABLE said (
  number  INTEGER PRIMARY KEY AUTOINCREMENT,
  portal  INTEGER NOT NULL,
  type    TEXT NOT NULL,
  about   TEXT NOT NULL,
  epoch   INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  hash    BLOB NOT NULL,
  until   INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  signer  TEXT NOT NULL,
  wire    BLOB, -- NULL when only its version is remembered
  UNIQUE (portal, type, about)
);

CREATE INDEX said_type ON said (type, number) WHERE wire IS NOT NULL;

-- What portals are or were quarantined for. lower or higher is NULL when that
-- record was forgotten but for its hash.
CREATE TABLE conflicts (
  portal   INTEGER NOT NULL,
  type     TEXT NOT NULL,
  about    TEXT NOT NULL,
  epoch    INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  lower    BLOB,
  higher   BLOB,
  released INTEGER NOT NULL DEFAULT 0, -- an operator has seen it and let the portal go
  PRIMARY KEY (portal, type, about, epoch, seq)
);
