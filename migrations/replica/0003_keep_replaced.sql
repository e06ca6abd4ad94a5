-- +goose Up
-- What a head covered until a newer record of the same slot came that waits for
-- its head: it goes on being shown. It counts while turn is that of its portal;
-- kept is the turn in which it was kept itself.
CREATE TABLE replaced (
  n       INTEGER PRIMARY KEY,
  portal  INTEGER NOT NULL,
  akey    BLOB NOT NULL,
  turn    INTEGER NOT NULL,
  kept    INTEGER NOT NULL,
  epoch   INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  hash    BLOB NOT NULL,
  expires INTEGER NOT NULL,
  signer  TEXT NOT NULL,
  wire    BLOB NOT NULL,
  UNIQUE (portal, akey)
);

CREATE INDEX replaced_of ON replaced (portal);
