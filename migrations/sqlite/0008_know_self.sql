-- +goose Up
-- The cards that this portal signed of itself, newest last: a version that was
-- used is never used again.
CREATE TABLE own_cards (
  network TEXT NOT NULL CHECK (length(network) BETWEEN 1 AND 32),
  epoch   INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  wire    BLOB NOT NULL CHECK (length(wire) BETWEEN 1 AND 49152),
  PRIMARY KEY (network, epoch, seq)
) STRICT, WITHOUT ROWID;

-- What signatures of other portals' requests were made unique by, hashed with
-- the key, until the signature does not count any more.
CREATE TABLE peer_nonces (
  nonce BLOB NOT NULL PRIMARY KEY CHECK (length(nonce) = 16),
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX peer_nonces_until ON peer_nonces (until);
