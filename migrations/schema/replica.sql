CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

CREATE TABLE owner (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  portal  TEXT NOT NULL,
  network TEXT NOT NULL
);

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
, whole_epoch INTEGER NOT NULL DEFAULT 0, whole_seq INTEGER NOT NULL DEFAULT 0, whole_hash BLOB, turn INTEGER NOT NULL DEFAULT 0);

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
  n       INTEGER, turn INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (portal, akey)
) WITHOUT ROWID;

CREATE INDEX agents_log ON agents (portal, epoch, seq, n) WHERE n IS NOT NULL;

CREATE TABLE wires (
  n    INTEGER PRIMARY KEY,
  gone INTEGER NOT NULL,
  wire BLOB NOT NULL
);

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
