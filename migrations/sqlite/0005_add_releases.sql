-- +goose Up
-- Servers of the MCP registry by the name they were published under. agent_id
-- is the agent that calls it, null while no version of it had an address that
-- this portal calls; site is whose quota it counts against; held: the operator
-- deleted all of it, and nobody else changes it; revision grows with each
-- change of it or its releases.
CREATE TABLE servers (
  name       TEXT PRIMARY KEY CHECK (length(name) <= 200),
  agent_id   TEXT UNIQUE REFERENCES agents (id),
  site       TEXT NOT NULL CHECK (length(site) <= 300),
  held       INTEGER NOT NULL DEFAULT 0,
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX servers_site ON servers (site);

-- The versions of a server. document is what was published, byte for byte;
-- title, description and endpoint are what its agent says of itself while
-- this is the latest version.
CREATE TABLE releases (
  id             INTEGER PRIMARY KEY,
  name           TEXT NOT NULL REFERENCES servers (name),
  version        TEXT NOT NULL CHECK (length(version) BETWEEN 1 AND 255),
  status         TEXT NOT NULL CHECK (status IN ('active', 'deprecated', 'deleted')),
  status_message TEXT NOT NULL DEFAULT '' CHECK (length(status_message) <= 500),
  latest         INTEGER NOT NULL,
  published_at   INTEGER NOT NULL,
  status_at      INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  size           INTEGER NOT NULL,
  title          TEXT NOT NULL CHECK (length(title) <= 200),
  description    TEXT NOT NULL CHECK (length(description) <= 1000),
  endpoint       TEXT NOT NULL CHECK (length(endpoint) <= 2048),
  document       TEXT NOT NULL CHECK (length(document) <= 32768)
) STRICT;
CREATE UNIQUE INDEX releases_order ON releases (name, version);
CREATE INDEX releases_updated ON releases (updated_at);

-- The addresses a release names: no two servers name the same.
CREATE TABLE release_remotes (
  url        TEXT NOT NULL CHECK (length(url) <= 2048),
  release_id INTEGER NOT NULL REFERENCES releases (id),
  PRIMARY KEY (url, release_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX release_remotes_release ON release_remotes (release_id);

-- The registry lists agents of kind mcp that nobody published, too.
CREATE INDEX agents_mcp ON agents (name) WHERE kind = 'mcp';
CREATE INDEX agents_mcp_updated ON agents (updated_at) WHERE kind = 'mcp';

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
