-- +goose Up
-- What the portal knew of the DHT at its last end: nodes, the best first, and
-- what it keeps for others.
CREATE TABLE dht_nodes (
  rank INTEGER PRIMARY KEY,
  id   BLOB NOT NULL UNIQUE,
  node BLOB NOT NULL
);

CREATE TABLE dht_records (
  key       BLOB NOT NULL,
  publisher BLOB NOT NULL,
  expires   INTEGER NOT NULL,
  value     BLOB NOT NULL,
  PRIMARY KEY (key, publisher)
) WITHOUT ROWID;

CREATE INDEX dht_records_expire ON dht_records (expires);
CREATE INDEX dht_records_of ON dht_records (publisher);
