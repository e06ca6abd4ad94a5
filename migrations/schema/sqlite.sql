CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

CREATE TABLE portal (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  public_key BLOB NOT NULL,
  url        TEXT NOT NULL DEFAULT '' CHECK (length(url) <= 500),
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE names (
  name       TEXT PRIMARY KEY CHECK (length(name) BETWEEN 2 AND 40),
  kind       TEXT NOT NULL CHECK (kind IN ('account', 'agent')),
  ref        TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
  id            TEXT PRIMARY KEY,
  name          TEXT NOT NULL UNIQUE REFERENCES names (name),
  password_hash TEXT NOT NULL CHECK (length(password_hash) <= 300),
  email         TEXT NOT NULL DEFAULT '' CHECK (length(email) <= 254),
  operator      INTEGER NOT NULL DEFAULT 0,
  disabled_at   INTEGER NOT NULL DEFAULT 0,
  created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE credentials (
  id         TEXT PRIMARY KEY,
  hash       TEXT NOT NULL UNIQUE,
  kind       TEXT NOT NULL CHECK (kind IN ('session', 'guest', 'token', 'reset', 'invite', 'setup')),
  account_id TEXT REFERENCES accounts (id),
  label      TEXT NOT NULL DEFAULT '' CHECK (length(label) <= 200),
  scopes     TEXT NOT NULL DEFAULT '' CHECK (length(scopes) <= 500),
  created_at INTEGER NOT NULL,
  used_at    INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL
, parent TEXT REFERENCES credentials (id) ON DELETE CASCADE) STRICT, WITHOUT ROWID;

CREATE INDEX credentials_account ON credentials (account_id, kind);

CREATE INDEX credentials_expiry ON credentials (expires_at);

CREATE TABLE agents (
  id             TEXT PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE REFERENCES names (name),
  kind           TEXT NOT NULL CHECK (length(kind) <= 20),
  owner_id       TEXT REFERENCES accounts (id),
  version        INTEGER NOT NULL,
  title          TEXT NOT NULL CHECK (length(title) <= 200),
  visibility     TEXT NOT NULL CHECK (visibility IN ('public', 'unlisted', 'private')),
  -- spec is the JSON of what a version says: description, endpoint, skills, …
  spec           TEXT NOT NULL CHECK (length(spec) <= 1048576),
  secret         BLOB CHECK (length(secret) <= 8192),
  status         TEXT NOT NULL DEFAULT 'active',
  status_message TEXT NOT NULL DEFAULT '' CHECK (length(status_message) <= 500),
  live_state     TEXT NOT NULL DEFAULT 'unknown',
  live_reason    TEXT NOT NULL DEFAULT '' CHECK (length(live_reason) <= 500),
  live_latency   INTEGER NOT NULL DEFAULT 0,
  live_at        INTEGER NOT NULL DEFAULT 0,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  deleted_at     INTEGER NOT NULL DEFAULT 0
, held INTEGER NOT NULL DEFAULT 0, proof_method TEXT NOT NULL DEFAULT '', proof_origin TEXT NOT NULL DEFAULT '' CHECK (length(proof_origin) <= 500), proof_at INTEGER NOT NULL DEFAULT 0, check_at INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE TABLE agent_versions (
  agent_id   TEXT NOT NULL REFERENCES agents (id),
  version    INTEGER NOT NULL,
  title      TEXT NOT NULL,
  visibility TEXT NOT NULL,
  spec       TEXT NOT NULL CHECK (length(spec) <= 1048576),
  author_id  TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL, kind TEXT NOT NULL DEFAULT '', note TEXT NOT NULL DEFAULT '' CHECK (length(note) <= 1000), status TEXT NOT NULL DEFAULT 'active', icon TEXT NOT NULL DEFAULT '' CHECK (length(icon) <= 100),
  PRIMARY KEY (agent_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversations (
  id         TEXT PRIMARY KEY,
  title      TEXT NOT NULL CHECK (length(title) <= 500),
  last_seq   INTEGER NOT NULL DEFAULT 0,
  head_hash  BLOB,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, speaks TEXT NOT NULL DEFAULT 'alone' CHECK (speaks IN ('alone', 'nobody', 'agent', 'turns')), speaker_id TEXT NOT NULL DEFAULT '', spoke_id TEXT NOT NULL DEFAULT '', past TEXT NOT NULL DEFAULT 'all' CHECK (past IN ('all', 'nothing')), hops INTEGER NOT NULL DEFAULT 3, turns INTEGER NOT NULL DEFAULT 8, budget INTEGER NOT NULL DEFAULT 262144, branched_from TEXT NOT NULL DEFAULT '', branched_seq INTEGER NOT NULL DEFAULT 0, words_seq INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;

CREATE TABLE members (
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  kind            TEXT NOT NULL CHECK (kind IN ('person', 'guest', 'agent')),
  member_id       TEXT NOT NULL,
  handle          TEXT NOT NULL CHECK (length(handle) <= 300),
  role            TEXT NOT NULL DEFAULT 'member',
  read_seq        INTEGER NOT NULL DEFAULT 0,
  joined_at       INTEGER NOT NULL,
  left_at         INTEGER NOT NULL DEFAULT 0, from_seq INTEGER NOT NULL DEFAULT 0, pinned_at INTEGER NOT NULL DEFAULT 0, archived_at INTEGER NOT NULL DEFAULT 0, notify TEXT NOT NULL DEFAULT '' CHECK (notify IN ('', 'mentions', 'nothing')),
  PRIMARY KEY (conversation_id, kind, member_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX members_of ON members (member_id, kind, conversation_id) WHERE left_at = 0;

CREATE TABLE messages (
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  seq             INTEGER NOT NULL CHECK (seq > 0),
  id              TEXT NOT NULL,
  sender_kind     TEXT NOT NULL,
  sender_id       TEXT NOT NULL,
  sender_handle   TEXT NOT NULL CHECK (length(sender_handle) <= 300),
  kind            TEXT NOT NULL,
  body            TEXT NOT NULL CHECK (length(body) <= 4194304),
  task_id         TEXT NOT NULL DEFAULT '',
  task_state      TEXT NOT NULL DEFAULT '',
  reason          TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 1000),
  created_at      INTEGER NOT NULL,
  hash            BLOB NOT NULL, target INTEGER NOT NULL DEFAULT 0, edit_seq INTEGER NOT NULL DEFAULT 0, gone_seq INTEGER NOT NULL DEFAULT 0, newer_seq INTEGER NOT NULL DEFAULT 0, reacted INTEGER NOT NULL DEFAULT 0, body_hash BLOB, charged TEXT NOT NULL DEFAULT '' CHECK (length(charged) <= 300), salt BLOB,
  PRIMARY KEY (conversation_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE client_ids (
  conversation_id TEXT NOT NULL,
  sender_id       TEXT NOT NULL,
  client_id       TEXT NOT NULL CHECK (length(client_id) <= 300),
  seq             INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, sender_id, client_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  id              TEXT PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  agent_id        TEXT NOT NULL REFERENCES agents (id),
  agent_handle    TEXT NOT NULL,
  caller_kind     TEXT NOT NULL,
  caller_id       TEXT NOT NULL,
  caller_handle   TEXT NOT NULL,
  message_seq     INTEGER NOT NULL,
  answer_seq      INTEGER NOT NULL DEFAULT 0,
  state           TEXT NOT NULL,
  reason          TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 1000),
  artifacts       TEXT NOT NULL DEFAULT '' CHECK (length(artifacts) <= 4194304),
  attempt         INTEGER NOT NULL DEFAULT 0,
  checkpoint      TEXT NOT NULL DEFAULT '' CHECK (length(checkpoint) <= 65536),
  face            TEXT NOT NULL DEFAULT '',
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
, long_checkpoint TEXT NOT NULL DEFAULT '' CHECK (length(long_checkpoint) <= 4194304), root_seq INTEGER NOT NULL DEFAULT 0, hop INTEGER NOT NULL DEFAULT 0, replaces INTEGER NOT NULL DEFAULT 0, share TEXT NOT NULL DEFAULT '', pushed INTEGER NOT NULL DEFAULT 0, direct INTEGER NOT NULL DEFAULT 0, via TEXT NOT NULL DEFAULT '' CHECK (length(via) <= 16384), budget TEXT NOT NULL DEFAULT '' CHECK (length(budget) <= 100), caller_group TEXT NOT NULL DEFAULT '' CHECK (length(caller_group) <= 64)) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_caller ON tasks (caller_id, caller_kind, id);

CREATE INDEX tasks_conversation ON tasks (conversation_id, agent_id, id);

CREATE TABLE outbox (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  topic      TEXT NOT NULL,
  ref        TEXT NOT NULL,
  fence      INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX outbox_topic ON outbox (topic, id);

CREATE UNIQUE INDEX outbox_ref ON outbox (topic, ref);

CREATE TABLE audit (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  actor_kind TEXT NOT NULL,
  actor_id   TEXT NOT NULL,
  act        TEXT NOT NULL,
  subject    TEXT NOT NULL CHECK (length(subject) <= 500),
  created_at INTEGER NOT NULL
, why TEXT NOT NULL DEFAULT '' CHECK (length(why) <= 500), hash BLOB NOT NULL DEFAULT x'') STRICT;

CREATE INDEX agents_check ON agents (check_at)
  WHERE deleted_at = 0 AND kind NOT IN ('builtin', 'link') AND status IN ('active', 'deprecated', 'draft');

CREATE INDEX agent_versions_icon ON agent_versions (icon) WHERE icon <> '';

CREATE TABLE agent_owners (
  agent_id   TEXT NOT NULL REFERENCES agents (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  added_at   INTEGER NOT NULL,
  PRIMARY KEY (agent_id, account_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX agent_owners_account ON agent_owners (account_id);

CREATE TABLE agent_offers (
  agent_id   TEXT PRIMARY KEY REFERENCES agents (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX agent_offers_account ON agent_offers (account_id);

CREATE TABLE account_domains (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  domain     TEXT NOT NULL CHECK (length(domain) <= 260),
  proved_at  INTEGER NOT NULL,
  checked_at INTEGER NOT NULL,
  failures   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, domain)
) STRICT, WITHOUT ROWID;

CREATE INDEX account_domains_checked ON account_domains (checked_at);

CREATE TABLE icons (
  hash       TEXT PRIMARY KEY CHECK (length(hash) <= 100),
  created_at INTEGER NOT NULL,
  data       BLOB NOT NULL CHECK (length(data) <= 131072)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_health (
  agent_id TEXT PRIMARY KEY REFERENCES agents (id),
  history  BLOB NOT NULL CHECK (length(history) <= 4096)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_days (
  agent_id  TEXT NOT NULL REFERENCES agents (id),
  day       INTEGER NOT NULL,
  calls     INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed    INTEGER NOT NULL DEFAULT 0,
  canceled  INTEGER NOT NULL DEFAULT 0,
  guests    INTEGER NOT NULL DEFAULT 0,
  ms        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (agent_id, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_agent ON tasks (agent_id, created_at);

CREATE INDEX tasks_waiting ON tasks (conversation_id, agent_id, caller_id) WHERE state IN ('input_required', 'auth_required');

CREATE TABLE agent_traces (
  agent_id TEXT NOT NULL REFERENCES agents (id),
  task_id  TEXT NOT NULL,
  n        INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  sent     INTEGER NOT NULL,
  head     TEXT NOT NULL CHECK (length(head) <= 8192),
  body     TEXT NOT NULL CHECK (length(body) <= 8192),
  size     INTEGER NOT NULL,
  PRIMARY KEY (agent_id, task_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE reports (
  id              TEXT PRIMARY KEY,
  agent_id        TEXT NOT NULL REFERENCES agents (id),
  reporter_kind   TEXT NOT NULL,
  reporter_id     TEXT NOT NULL,
  reporter_handle TEXT NOT NULL CHECK (length(reporter_handle) <= 300),
  reason          TEXT NOT NULL CHECK (length(reason) <= 40),
  text            TEXT NOT NULL CHECK (length(text) <= 4000),
  created_at      INTEGER NOT NULL,
  closed_at       INTEGER NOT NULL DEFAULT 0,
  closed_by       TEXT NOT NULL DEFAULT '',
  outcome         TEXT NOT NULL DEFAULT '' CHECK (length(outcome) <= 1000)
) STRICT, WITHOUT ROWID;

CREATE INDEX reports_open ON reports (closed_at, id);

CREATE INDEX reports_agent ON reports (agent_id, closed_at, id);

CREATE TABLE notices (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  kind       TEXT NOT NULL CHECK (length(kind) <= 40),
  subject    TEXT NOT NULL CHECK (length(subject) <= 200),
  text       TEXT NOT NULL CHECK (length(text) <= 1000),
  href       TEXT NOT NULL CHECK (length(href) <= 500),
  created_at INTEGER NOT NULL,
  read_at    INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX notices_account ON notices (account_id, id);

CREATE INDEX notices_unread ON notices (account_id, id) WHERE read_at = 0;

CREATE TABLE searches (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  title      TEXT NOT NULL CHECK (length(title) <= 500),
  query      TEXT NOT NULL CHECK (length(query) <= 2000),
  seen_at    INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX searches_account ON searches (account_id, id);

CREATE TABLE model_days (
  day    TEXT NOT NULL CHECK (length(day) = 10),
  who    TEXT NOT NULL CHECK (length(who) <= 100),
  tokens INTEGER NOT NULL,
  PRIMARY KEY (day, who)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_edits ON messages (conversation_id, target) WHERE kind = 'edit';

CREATE TABLE reactions (
  conversation_id TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  emoji           TEXT NOT NULL CHECK (length(emoji) <= 64),
  member_kind     TEXT NOT NULL,
  member_id       TEXT NOT NULL,
  handle          TEXT NOT NULL CHECK (length(handle) <= 300),
  set_seq         INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, seq, emoji, member_kind, member_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_root ON tasks (conversation_id, root_seq) WHERE root_seq > 0;

CREATE INDEX tasks_active ON tasks (conversation_id, id) WHERE state IN ('submitted', 'working', 'input_required', 'auth_required');

CREATE TABLE room_links (
  id              TEXT PRIMARY KEY,
  hash            TEXT NOT NULL UNIQUE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  kind            TEXT NOT NULL CHECK (kind IN ('join', 'read')),
  role            TEXT NOT NULL DEFAULT 'member',
  up_to_seq       INTEGER NOT NULL DEFAULT 0,
  from_seq        INTEGER NOT NULL DEFAULT 0,
  creator_kind    TEXT NOT NULL,
  creator_id      TEXT NOT NULL,
  creator_handle  TEXT NOT NULL CHECK (length(creator_handle) <= 300),
  uses            INTEGER NOT NULL DEFAULT 0,
  max_uses        INTEGER NOT NULL DEFAULT 0,
  created_at      INTEGER NOT NULL,
  expires_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX room_links_conversation ON room_links (conversation_id, id);

CREATE INDEX room_links_expiry ON room_links (expires_at);

CREATE TABLE disclosures (
  member_kind TEXT NOT NULL,
  member_id   TEXT NOT NULL,
  agent_id    TEXT NOT NULL REFERENCES agents (id),
  host        TEXT NOT NULL CHECK (length(host) <= 300),
  share       TEXT NOT NULL CHECK (share IN ('all', 'own', 'nothing')),
  told_at     INTEGER NOT NULL,
  PRIMARY KEY (member_kind, member_id, agent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE files (
  hash       TEXT PRIMARY KEY CHECK (length(hash) = 64),
  size       INTEGER NOT NULL,
  media_type TEXT NOT NULL CHECK (length(media_type) <= 200),
  created_at INTEGER NOT NULL,
  loose_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX files_loose ON files (loose_at) WHERE loose_at > 0;

CREATE TABLE uploads (
  owner_kind TEXT NOT NULL,
  owner_id   TEXT NOT NULL,
  hash       TEXT NOT NULL REFERENCES files (hash),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner_kind, owner_id, hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX uploads_hash ON uploads (hash);

CREATE TABLE file_uses (
  hash            TEXT NOT NULL REFERENCES files (hash),
  conversation_id TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  PRIMARY KEY (hash, conversation_id, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_uses_message ON file_uses (conversation_id, seq);

CREATE TABLE chat_prefs (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  notify     TEXT NOT NULL DEFAULT '' CHECK (notify IN ('', 'mentions', 'nothing')),
  quiet_from INTEGER NOT NULL DEFAULT 0 CHECK (quiet_from BETWEEN 0 AND 1439),
  quiet_to   INTEGER NOT NULL DEFAULT 0 CHECK (quiet_to BETWEEN 0 AND 1439),
  zone       TEXT NOT NULL DEFAULT '' CHECK (length(zone) <= 64)
) STRICT, WITHOUT ROWID;

CREATE TABLE said (
  id              INTEGER PRIMARY KEY,
  conversation_id TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  UNIQUE (conversation_id, seq)
) STRICT;

CREATE TABLE hooks (
  id            TEXT PRIMARY KEY,
  kind          TEXT NOT NULL CHECK (kind IN ('webhook', 'push')),
  owner_kind    TEXT NOT NULL,
  owner_id      TEXT NOT NULL,
  -- task_id, name and version are of push: name is the client's id for it.
  task_id       TEXT NOT NULL DEFAULT '',
  name          TEXT NOT NULL DEFAULT '' CHECK (length(name) <= 200),
  version       TEXT NOT NULL DEFAULT '',
  label         TEXT NOT NULL DEFAULT '' CHECK (length(label) <= 200),
  url           TEXT NOT NULL CHECK (length(url) <= 2048),
  host          TEXT NOT NULL CHECK (length(host) <= 300),
  events        TEXT NOT NULL DEFAULT '' CHECK (length(events) <= 500),
  scheme        TEXT NOT NULL DEFAULT '' CHECK (length(scheme) <= 40),
  secret        BLOB NOT NULL CHECK (length(secret) <= 16384),
  state         TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'failed')),
  reason        TEXT NOT NULL DEFAULT '' CHECK (length(reason) <= 500),
  -- How many events wait, and how many were not kept because too many did.
  waiting       INTEGER NOT NULL DEFAULT 0,
  missed        INTEGER NOT NULL DEFAULT 0,
  -- Attempts in a row that failed, since when, and when the next is due.
  failures      INTEGER NOT NULL DEFAULT 0,
  failing_since INTEGER NOT NULL DEFAULT 0,
  next_at       INTEGER NOT NULL DEFAULT 0,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX hooks_owner ON hooks (owner_id, id) WHERE kind = 'webhook';

CREATE UNIQUE INDEX hooks_task ON hooks (task_id, name) WHERE kind = 'push';

CREATE INDEX hooks_due ON hooks (next_at) WHERE waiting > 0 AND state = 'active';

CREATE TABLE hook_events (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  hook_id    TEXT NOT NULL REFERENCES hooks (id),
  event_id   TEXT NOT NULL,
  type       TEXT NOT NULL CHECK (length(type) <= 40),
  facts      TEXT NOT NULL CHECK (length(facts) <= 8192),
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX hook_events_hook ON hook_events (hook_id, id);

CREATE TABLE hook_attempts (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  hook_id  TEXT NOT NULL REFERENCES hooks (id),
  event_id TEXT NOT NULL,
  type     TEXT NOT NULL,
  at       INTEGER NOT NULL,
  status   INTEGER NOT NULL,
  took     INTEGER NOT NULL,
  error    TEXT NOT NULL CHECK (length(error) <= 500)
) STRICT;

CREATE INDEX hook_attempts_hook ON hook_attempts (hook_id, id);

CREATE TABLE servers (
  name       TEXT PRIMARY KEY CHECK (length(name) <= 200),
  agent_id   TEXT UNIQUE REFERENCES agents (id),
  site       TEXT NOT NULL CHECK (length(site) <= 300),
  held       INTEGER NOT NULL DEFAULT 0,
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX servers_site ON servers (site);

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

CREATE TABLE release_remotes (
  url        TEXT NOT NULL CHECK (length(url) <= 2048),
  release_id INTEGER NOT NULL REFERENCES releases (id),
  PRIMARY KEY (url, release_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX release_remotes_release ON release_remotes (release_id);

CREATE INDEX agents_mcp ON agents (name) WHERE kind = 'mcp';

CREATE INDEX agents_mcp_updated ON agents (updated_at) WHERE kind = 'mcp';

CREATE TABLE first_asks (
  caller_id       TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  client_id       TEXT NOT NULL CHECK (length(client_id) <= 300),
  conversation_id TEXT NOT NULL,
  PRIMARY KEY (caller_id, agent_id, client_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX first_asks_rooms ON first_asks (conversation_id);

CREATE TABLE own_cards (
  network TEXT NOT NULL CHECK (length(network) BETWEEN 1 AND 32),
  epoch   INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  wire    BLOB NOT NULL CHECK (length(wire) BETWEEN 1 AND 49152),
  PRIMARY KEY (network, epoch, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE peer_nonces (
  nonce BLOB NOT NULL PRIMARY KEY CHECK (length(nonce) = 16),
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX peer_nonces_until ON peer_nonces (until);

CREATE TRIGGER agents_publish_new AFTER INSERT ON agents WHEN NEW.visibility = 'public'
BEGIN
  INSERT OR REPLACE INTO outbox (topic, ref, created_at) VALUES ('publish', NEW.id, NEW.updated_at);
END;

CREATE TRIGGER agents_publish_change
AFTER UPDATE OF name, kind, owner_id, title, visibility, spec, status, status_message, held, proof_method, proof_origin, proof_at, deleted_at ON agents
WHEN OLD.visibility = 'public' OR NEW.visibility = 'public'
BEGIN
  INSERT OR REPLACE INTO outbox (topic, ref, created_at) VALUES ('publish', NEW.id, NEW.updated_at);
END;

CREATE TRIGGER agents_publish_removed AFTER DELETE ON agents WHEN OLD.visibility = 'public'
BEGIN
  INSERT OR REPLACE INTO outbox (topic, ref, created_at) VALUES ('publish', OLD.id, OLD.updated_at);
END;

CREATE TRIGGER accounts_publish AFTER UPDATE OF disabled_at ON accounts WHEN OLD.disabled_at <> NEW.disabled_at
BEGIN
  INSERT OR REPLACE INTO outbox (topic, ref, created_at)
    SELECT 'publish', id, NEW.disabled_at FROM agents WHERE owner_id = NEW.id AND visibility = 'public' AND deleted_at = 0;
END;

CREATE TABLE elsewhere (
  agent_id   TEXT PRIMARY KEY REFERENCES agents (id),
  network_id TEXT NOT NULL CHECK (length(network_id) BETWEEN 1 AND 100),
  portal_id  TEXT NOT NULL CHECK (length(portal_id) BETWEEN 1 AND 60),
  -- name@host was its handle when it was asked last.
  name       TEXT NOT NULL CHECK (length(name) BETWEEN 2 AND 40),
  host       TEXT NOT NULL CHECK (length(host) BETWEEN 1 AND 255),
  title      TEXT NOT NULL CHECK (length(title) <= 400),
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX elsewhere_handle ON elsewhere (name, host);

CREATE INDEX tasks_portals ON tasks (caller_id) WHERE caller_kind = 'portal' AND state IN ('submitted', 'working', 'input_required', 'auth_required');

CREATE TABLE peers (
  key      TEXT PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 300),
  facts    TEXT NOT NULL CHECK (json_valid(facts) AND length(facts) <= 16384),
  known_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE peer_changes (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  peer   TEXT NOT NULL,
  state  TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (length(reason) <= 1000),
  at     INTEGER NOT NULL
) STRICT;

CREATE INDEX peer_changes_peer ON peer_changes (peer, id);

CREATE TABLE peer_policy (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  policy TEXT NOT NULL CHECK (json_valid(policy))
) STRICT;

CREATE INDEX audit_act ON audit (act, id);

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit BEGIN
  SELECT RAISE(ABORT, 'the log of decisions is only added to');
END;

CREATE TRIGGER audit_remains BEFORE DELETE ON audit BEGIN
  SELECT RAISE(ABORT, 'the log of decisions is only added to');
END;

CREATE TABLE counters (
  name  TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 64),
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE storage (
  kind  TEXT NOT NULL CHECK (kind IN ('account', 'agent', 'guest', 'address', 'portal')),
  id    TEXT NOT NULL CHECK (length(id) BETWEEN 1 AND 300),
  bytes INTEGER NOT NULL,
  day   INTEGER NOT NULL DEFAULT 0,
  today INTEGER NOT NULL DEFAULT 0,
  place TEXT NOT NULL DEFAULT '' CHECK (length(place) <= 100),
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX storage_greatest ON storage (kind, bytes);

CREATE VIEW storage_changes AS SELECT '' AS kind, '' AS id, 0 AS bytes, 0 AS at;

CREATE TRIGGER storage_count INSTEAD OF INSERT ON storage_changes BEGIN
  INSERT INTO storage (kind, id, bytes, day, today)
    SELECT kind, id, NEW.bytes, NEW.at / 86400000, max(NEW.bytes, 0) FROM (
      SELECT CASE WHEN NEW.kind IN ('person', 'operator') THEN 'account' WHEN NEW.kind = 'agent' THEN 'agent'
          WHEN NEW.kind IN ('guest', 'portal') AND instr(NEW.id, '/') > 0 THEN 'portal'
          WHEN NEW.kind = 'guest' THEN 'guest' ELSE '' END AS kind,
        CASE WHEN NEW.kind IN ('guest', 'portal') AND instr(NEW.id, '/') > 0 THEN substr(NEW.id, 1, instr(NEW.id, '/') - 1)
          ELSE NEW.id END AS id
      UNION ALL SELECT 'account', owner_id FROM agents WHERE NEW.kind = 'agent' AND id = NEW.id AND owner_id IS NOT NULL
      UNION ALL SELECT 'address', place FROM storage WHERE NEW.kind = 'guest' AND kind = 'guest' AND id = NEW.id AND place <> ''
    ) WHERE kind <> '' AND id <> ''
    ON CONFLICT (kind, id) DO UPDATE SET bytes = bytes + excluded.bytes,
      today = CASE WHEN excluded.today = 0 OR excluded.day < day THEN today WHEN excluded.day = day THEN today + excluded.today
        ELSE excluded.today END,
      day = CASE WHEN excluded.today = 0 THEN day ELSE max(day, excluded.day) END;
END;

CREATE TRIGGER storage_message_new AFTER INSERT ON messages BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (
    CASE NEW.charged WHEN '' THEN NEW.sender_kind ELSE substr(NEW.charged, 1, instr(NEW.charged, ' ') - 1) END,
    CASE NEW.charged WHEN '' THEN NEW.sender_id ELSE substr(NEW.charged, instr(NEW.charged, ' ') + 1) END,
    octet_length(NEW.body) + 600, CASE NEW.charged WHEN '' THEN NEW.created_at ELSE (SELECT max(c.updated_at, NEW.created_at) FROM conversations c WHERE c.id = NEW.conversation_id) END);
END;

CREATE TRIGGER storage_message_change AFTER UPDATE OF body ON messages BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (
    CASE NEW.charged WHEN '' THEN NEW.sender_kind ELSE substr(NEW.charged, 1, instr(NEW.charged, ' ') - 1) END,
    CASE NEW.charged WHEN '' THEN NEW.sender_id ELSE substr(NEW.charged, instr(NEW.charged, ' ') + 1) END,
    octet_length(NEW.body) - octet_length(OLD.body), NEW.created_at);
END;

CREATE TRIGGER storage_message_gone AFTER DELETE ON messages BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (
    CASE OLD.charged WHEN '' THEN OLD.sender_kind ELSE substr(OLD.charged, 1, instr(OLD.charged, ' ') - 1) END,
    CASE OLD.charged WHEN '' THEN OLD.sender_id ELSE substr(OLD.charged, instr(OLD.charged, ' ') + 1) END,
    - octet_length(OLD.body) - 600, 0);
END;

CREATE TRIGGER storage_task_new AFTER INSERT ON tasks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.caller_kind, NEW.caller_id, octet_length(NEW.via) + 800, NEW.created_at);
END;

CREATE TRIGGER storage_task_via AFTER UPDATE OF via ON tasks WHEN NEW.via <> OLD.via BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.caller_kind, NEW.caller_id, octet_length(NEW.via) - octet_length(OLD.via), NEW.updated_at);
END;

CREATE TRIGGER storage_outcome_new AFTER INSERT ON tasks WHEN NEW.artifacts <> '' OR NEW.checkpoint <> '' OR NEW.long_checkpoint <> '' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT CASE WHEN owner_id IS NULL THEN NEW.caller_kind ELSE 'agent' END,
      CASE WHEN owner_id IS NULL THEN NEW.caller_id ELSE id END, octet_length(NEW.artifacts) + octet_length(NEW.checkpoint) + octet_length(NEW.long_checkpoint), NEW.updated_at
    FROM agents WHERE id = NEW.agent_id;
END;

CREATE TRIGGER storage_outcome_change AFTER UPDATE OF artifacts, checkpoint, long_checkpoint ON tasks WHEN NEW.artifacts <> '' OR NEW.checkpoint <> '' OR NEW.long_checkpoint <> '' OR OLD.artifacts <> '' OR OLD.checkpoint <> '' OR OLD.long_checkpoint <> '' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT CASE WHEN owner_id IS NULL THEN NEW.caller_kind ELSE 'agent' END,
      CASE WHEN owner_id IS NULL THEN NEW.caller_id ELSE id END, octet_length(NEW.artifacts) + octet_length(NEW.checkpoint) + octet_length(NEW.long_checkpoint) - octet_length(OLD.artifacts) - octet_length(OLD.checkpoint) - octet_length(OLD.long_checkpoint), NEW.updated_at
    FROM agents WHERE id = NEW.agent_id;
END;

CREATE TRIGGER storage_task_gone AFTER DELETE ON tasks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (OLD.caller_kind, OLD.caller_id, - octet_length(OLD.via) - 800, 0);
END;

CREATE TRIGGER storage_outcome_gone AFTER DELETE ON tasks WHEN OLD.artifacts <> '' OR OLD.checkpoint <> '' OR OLD.long_checkpoint <> '' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT CASE WHEN owner_id IS NULL THEN OLD.caller_kind ELSE 'agent' END,
      CASE WHEN owner_id IS NULL THEN OLD.caller_id ELSE id END, - octet_length(OLD.artifacts) - octet_length(OLD.checkpoint) - octet_length(OLD.long_checkpoint), 0
    FROM agents WHERE id = OLD.agent_id;
END;

CREATE TRIGGER storage_agent_new AFTER INSERT ON agents BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', NEW.id, octet_length(NEW.spec) + COALESCE(octet_length(NEW.secret), 0) + 1000, NEW.updated_at);
END;

CREATE TRIGGER storage_agent_change AFTER UPDATE OF owner_id, spec, secret ON agents BEGIN
  -- The move to the new owner comes first, because the change below counts for the new owner.
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT 'person', OLD.owner_id, - bytes, 0 FROM storage
    WHERE kind = 'agent' AND id = NEW.id AND OLD.owner_id IS NOT NULL AND NEW.owner_id IS NOT OLD.owner_id;
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT 'person', NEW.owner_id, bytes, 0 FROM storage
    WHERE kind = 'agent' AND id = NEW.id AND NEW.owner_id IS NOT NULL AND NEW.owner_id IS NOT OLD.owner_id;
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', NEW.id, octet_length(NEW.spec) + COALESCE(octet_length(NEW.secret), 0) - octet_length(OLD.spec) - COALESCE(octet_length(OLD.secret), 0), NEW.updated_at);
END;

CREATE TRIGGER storage_version_new AFTER INSERT ON agent_versions BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', NEW.agent_id, octet_length(NEW.spec) + octet_length(NEW.note) + 300, NEW.created_at);
END;

CREATE TRIGGER storage_version_change AFTER UPDATE OF spec, note ON agent_versions BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', NEW.agent_id, octet_length(NEW.spec) + octet_length(NEW.note) - octet_length(OLD.spec) - octet_length(OLD.note), NEW.created_at);
END;

CREATE TRIGGER storage_version_gone AFTER DELETE ON agent_versions BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('agent', OLD.agent_id, - octet_length(OLD.spec) - octet_length(OLD.note) - 300, 0);
END;

CREATE TRIGGER storage_release_new AFTER INSERT ON releases BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT 'agent', agent_id, octet_length(NEW.document) + 500, NEW.published_at FROM servers WHERE name = NEW.name AND agent_id IS NOT NULL;
END;

CREATE TRIGGER storage_release_change AFTER UPDATE OF document ON releases BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT 'agent', agent_id, octet_length(NEW.document) - octet_length(OLD.document), NEW.updated_at FROM servers WHERE name = NEW.name AND agent_id IS NOT NULL;
END;

CREATE TRIGGER storage_release_gone AFTER DELETE ON releases BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT 'agent', agent_id, - octet_length(OLD.document) - 500, 0 FROM servers WHERE name = OLD.name AND agent_id IS NOT NULL;
END;

CREATE TRIGGER storage_server_owner AFTER UPDATE OF agent_id ON servers WHEN NEW.agent_id IS NOT OLD.agent_id BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT 'agent', OLD.agent_id, - COALESCE(SUM(octet_length(document) + 500), 0), 0 FROM releases
    WHERE name = OLD.name AND OLD.agent_id IS NOT NULL;
  INSERT INTO storage_changes (kind, id, bytes, at)
    SELECT 'agent', NEW.agent_id, COALESCE(SUM(octet_length(document) + 500), 0), 0 FROM releases
    WHERE name = NEW.name AND NEW.agent_id IS NOT NULL;
END;

CREATE TRIGGER storage_credential_new AFTER INSERT ON credentials WHEN NEW.account_id IS NOT NULL OR NEW.kind = 'guest' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (CASE WHEN NEW.account_id IS NULL THEN 'guest' ELSE 'person' END, COALESCE(NEW.account_id, NEW.id), octet_length(NEW.label) + 500, NEW.created_at);
END;

CREATE TRIGGER storage_credential_gone AFTER DELETE ON credentials WHEN OLD.account_id IS NOT NULL OR OLD.kind = 'guest' BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (CASE WHEN OLD.account_id IS NULL THEN 'guest' ELSE 'person' END, COALESCE(OLD.account_id, OLD.id), - octet_length(OLD.label) - 500, 0);
END;

CREATE TRIGGER storage_hook_new AFTER INSERT ON hooks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.owner_kind, NEW.owner_id, octet_length(NEW.url) + octet_length(NEW.secret) + 800, NEW.created_at);
END;

CREATE TRIGGER storage_hook_change AFTER UPDATE OF url, secret ON hooks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.owner_kind, NEW.owner_id, octet_length(NEW.url) + octet_length(NEW.secret) - octet_length(OLD.url) - octet_length(OLD.secret), NEW.updated_at);
END;

CREATE TRIGGER storage_hook_gone AFTER DELETE ON hooks BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (OLD.owner_kind, OLD.owner_id, - octet_length(OLD.url) - octet_length(OLD.secret) - 800, 0);
END;

CREATE TRIGGER storage_upload_new AFTER INSERT ON uploads BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT NEW.owner_kind, NEW.owner_id, size + 300, NEW.created_at FROM files WHERE hash = NEW.hash;
END;

CREATE TRIGGER storage_upload_gone AFTER DELETE ON uploads BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) SELECT OLD.owner_kind, OLD.owner_id, - size - 300, 0 FROM files WHERE hash = OLD.hash;
END;

CREATE TRIGGER storage_search_new AFTER INSERT ON searches BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.account_id, octet_length(NEW.title) + octet_length(NEW.query) + 300, NEW.created_at);
END;

CREATE TRIGGER storage_search_gone AFTER DELETE ON searches BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.account_id, - octet_length(OLD.title) - octet_length(OLD.query) - 300, 0);
END;

CREATE TRIGGER storage_link_new AFTER INSERT ON room_links BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.creator_kind, NEW.creator_id, 500, NEW.created_at);
END;

CREATE TRIGGER storage_link_gone AFTER DELETE ON room_links BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (OLD.creator_kind, OLD.creator_id, -500, 0);
END;

CREATE TRIGGER storage_report_new AFTER INSERT ON reports BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (NEW.reporter_kind, NEW.reporter_id, octet_length(NEW.text) + 500, NEW.created_at);
END;

CREATE TRIGGER storage_report_gone AFTER DELETE ON reports BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES (OLD.reporter_kind, OLD.reporter_id, - octet_length(OLD.text) - 500, 0);
END;

CREATE TABLE room_invitations (
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  person_id       TEXT NOT NULL,
  inviter_id      TEXT NOT NULL,
  handle          TEXT NOT NULL CHECK (length(handle) <= 300),
  inviter_handle  TEXT NOT NULL CHECK (length(inviter_handle) <= 300),
  created_at      INTEGER NOT NULL,
  declined_at     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (conversation_id, person_id, inviter_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX room_invitations_of ON room_invitations (person_id, created_at) WHERE declined_at = 0;

CREATE TABLE invitation_days (
  inviter_id TEXT NOT NULL,
  day        INTEGER NOT NULL,
  sent       INTEGER NOT NULL,
  PRIMARY KEY (inviter_id, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE accepted_inviters (
  person_id   TEXT NOT NULL,
  inviter_id  TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, inviter_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE blocks (
  person_id  TEXT NOT NULL,
  blocked_id TEXT NOT NULL,
  handle     TEXT NOT NULL CHECK (length(handle) <= 300),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, blocked_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX blocks_by ON blocks (blocked_id, person_id);

CREATE INDEX credentials_parent ON credentials (parent) WHERE parent IS NOT NULL;

CREATE TABLE database_move (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- moving, moved: the source before and after its copy was proved.
  -- incomplete, complete: the copy.
  state TEXT NOT NULL CHECK (state IN ('moving', 'moved', 'incomplete', 'complete')),
  -- move is the random id that the two databases of a move share.
  move TEXT NOT NULL,
  -- other names the other database, without a password.
  other TEXT NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;

CREATE TABLE moved_tables (
  name TEXT PRIMARY KEY,
  row_count INTEGER NOT NULL,
  sum TEXT NOT NULL,
  copied_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE grants (
  -- The person chose the id, so that it is unique for the person only.
  id              TEXT NOT NULL CHECK (length(id) = 26),
  -- A person of this portal, or of another one.
  person_kind     TEXT NOT NULL CHECK (person_kind IN ('person', 'portal')),
  person_id       TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  agent           TEXT NOT NULL CHECK (length(agent) <= 300),
  tool            TEXT NOT NULL CHECK (length(tool) BETWEEN 1 AND 200),
  target          TEXT NOT NULL CHECK (length(target) <= 300),
  -- Empty for a decision about all conversations.
  conversation_id TEXT NOT NULL,
  allowed         INTEGER NOT NULL CHECK (allowed IN (0, 1)),
  -- calls is 0 if any number is allowed.
  calls           INTEGER NOT NULL CHECK (calls >= 0),
  used            INTEGER NOT NULL CHECK (used >= 0),
  until_at        INTEGER NOT NULL,
  -- The facts about the agent for which the decision was made.
  owner           TEXT NOT NULL,
  origin          TEXT NOT NULL,
  needs           TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (person_id, id),
  UNIQUE (person_id, agent_id, tool, target, conversation_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX grants_agent ON grants (agent_id);

CREATE INDEX grants_conversation ON grants (conversation_id) WHERE conversation_id <> '';

CREATE TABLE usage_days (
  day         INTEGER NOT NULL, -- days since 1970, UTC
  agent_id    TEXT NOT NULL,    -- empty for an agent that was tried before its registration
  owner_id    TEXT NOT NULL,    -- the owner at the time
  person_kind TEXT NOT NULL,
  person_id   TEXT NOT NULL,    -- empty for guests and people of other portals
  model       TEXT NOT NULL,
  portal      INTEGER NOT NULL CHECK (portal IN (0, 1)), -- the portal's own model
  purpose     TEXT NOT NULL CHECK (purpose IN ('work', 'talk')),
  calls       INTEGER NOT NULL,
  estimated   INTEGER NOT NULL, -- calls without a report of the provider
  input       INTEGER NOT NULL, -- tokens
  output      INTEGER NOT NULL,
  cost        INTEGER NOT NULL, -- millionths of the currency
  PRIMARY KEY (day, agent_id, owner_id, person_kind, person_id, model, portal, purpose)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_days_person ON usage_days (person_id, day);

CREATE INDEX usage_days_owner ON usage_days (owner_id, day);

CREATE TABLE models (
  id           TEXT PRIMARY KEY CHECK (length(id) = 26),
  owner_id     TEXT NOT NULL, -- empty for the portal
  name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 40),
  provider     TEXT NOT NULL CHECK (provider IN ('openai', 'anthropic')),
  url          TEXT NOT NULL CHECK (length(url) <= 500),
  model        TEXT NOT NULL CHECK (length(model) BETWEEN 1 AND 200),
  fallback     TEXT NOT NULL CHECK (length(fallback) <= 40),
  price_input  INTEGER NOT NULL CHECK (price_input >= 0), -- millionths of the currency for a million tokens
  price_output INTEGER NOT NULL CHECK (price_output >= 0),
  secret       BLOB, -- the sealed key
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  UNIQUE (owner_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE halts (
  kind       TEXT NOT NULL CHECK (kind IN ('agent', 'owner', 'provider')),
  subject    TEXT NOT NULL CHECK (length(subject) BETWEEN 1 AND 300), -- id of the agent or account, host of the provider
  operator   INTEGER NOT NULL CHECK (operator IN (0, 1)),
  name       TEXT NOT NULL,
  reason     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (kind, subject, operator)
) STRICT, WITHOUT ROWID;

CREATE TABLE ceilings (
  owner_id TEXT NOT NULL,
  agent_id TEXT NOT NULL, -- empty for all agents of the owner
  tokens   INTEGER NOT NULL CHECK (tokens >= 0), -- 0 for any number
  cost     INTEGER NOT NULL CHECK (cost >= 0),   -- millionths of the currency; 0 for any
  PRIMARY KEY (owner_id, agent_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX ceilings_agent ON ceilings (agent_id);

CREATE TABLE summaries (
  conversation_id TEXT NOT NULL,
  agent_id        TEXT NOT NULL,
  caller_id       TEXT NOT NULL, -- the person behind the question, because not all see the same messages
  scope           TEXT NOT NULL, -- the messages that this person let the agent have (task.Call.Scope)
  up_to           INTEGER NOT NULL, -- seq of the last message in the summary
  text            TEXT NOT NULL CHECK (length(text) <= 8000),
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, agent_id, caller_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX summaries_agent ON summaries (agent_id);

CREATE INDEX summaries_caller ON summaries (caller_id);

CREATE TABLE goals (
  id          TEXT PRIMARY KEY,
  owner_id    TEXT NOT NULL,
  owner       TEXT NOT NULL,
  key         TEXT NOT NULL, -- idempotency key of the request; the goal's own id for none
  goal        TEXT NOT NULL CHECK (length(goal) BETWEEN 1 AND 16384),
  state       TEXT NOT NULL CHECK (state IN ('forming', 'working', 'paused', 'concluded', 'failed', 'canceled')),
  reason      TEXT NOT NULL,
  open        INTEGER NOT NULL CHECK (open IN (0, 1)), -- 1 while the portal has work to do for it
  parent_id   TEXT NOT NULL, -- the goal for a task of which it works, empty for a goal of a person
  parent_task INTEGER NOT NULL,
  seq         INTEGER NOT NULL, -- of the last event
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  UNIQUE (owner_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX goals_owner ON goals (owner_id, parent_id, id);

CREATE INDEX goals_parent ON goals (parent_id, parent_task);

CREATE INDEX goals_open ON goals (open, owner_id);

CREATE TABLE goal_events (
  goal_id TEXT NOT NULL,
  seq     INTEGER NOT NULL CHECK (seq >= 1),
  event   TEXT NOT NULL, -- JSON
  PRIMARY KEY (goal_id, seq)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE said_words USING fts5 (words, content='', contentless_delete=1, tokenize='ascii');

CREATE TABLE module_bytes (
  hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
  data BLOB NOT NULL CHECK (length(data) <= 67108864)
) STRICT, WITHOUT ROWID;

CREATE TABLE modules (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  hash       TEXT NOT NULL REFERENCES module_bytes (hash),
  name       TEXT NOT NULL CHECK (length(name) <= 200),
  size       INTEGER NOT NULL,
  created_at INTEGER NOT NULL, package TEXT NOT NULL DEFAULT '', portal TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (account_id, hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX modules_hash ON modules (hash);

CREATE TABLE hosting (
  one   INTEGER PRIMARY KEY CHECK (one = 1),
  rules TEXT NOT NULL CHECK (json_valid(rules))
) STRICT;

CREATE TRIGGER storage_module_new AFTER INSERT ON modules BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.account_id, NEW.size + 300, NEW.created_at);
END;

CREATE TRIGGER storage_module_gone AFTER DELETE ON modules BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.account_id, - OLD.size - 300, 0);
END;

CREATE TRIGGER module_bytes_unused AFTER DELETE ON modules BEGIN
  DELETE FROM module_bytes WHERE hash = OLD.hash AND NOT EXISTS (SELECT 1 FROM modules m WHERE m.hash = OLD.hash);
END;

CREATE TABLE memories (
  id              TEXT PRIMARY KEY,
  person_id       TEXT NOT NULL REFERENCES accounts (id),
  agent_id        TEXT NOT NULL REFERENCES agents (id),
  room_id         TEXT NOT NULL, -- the conversation of several members to which it belongs, empty for one of the person alone
  conversation_id TEXT NOT NULL, -- where the person said it
  seq             INTEGER NOT NULL, -- of the message there
  text            TEXT NOT NULL CHECK (length(text) BETWEEN 1 AND 2000),
  distilled       INTEGER NOT NULL CHECK (distilled IN (0, 1)), -- 1 if a model took it from the conversation
  binding         TEXT NOT NULL, -- hash of the facts about the agent when the person agreed to this one, empty for one under a grant
  created_at      INTEGER NOT NULL,
  used_at         INTEGER NOT NULL -- the last recall, at first created_at
) STRICT, WITHOUT ROWID;

CREATE INDEX memories_person ON memories (person_id, id);

CREATE INDEX memories_place ON memories (person_id, agent_id, room_id, used_at);

CREATE INDEX memories_room ON memories (room_id, agent_id);

CREATE INDEX memories_agent ON memories (agent_id);

CREATE TRIGGER storage_memory_new AFTER INSERT ON memories BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.person_id, octet_length(NEW.text) + 300, NEW.created_at);
END;

CREATE TRIGGER storage_memory_gone AFTER DELETE ON memories BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.person_id, - octet_length(OLD.text) - 300, 0);
END;

CREATE TRIGGER storage_memory_text AFTER UPDATE OF text ON memories BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.person_id, octet_length(NEW.text) - octet_length(OLD.text), 0);
END;

CREATE TABLE packages (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  author     TEXT NOT NULL,
  name       TEXT NOT NULL,
  version    TEXT NOT NULL,
  manifest   TEXT NOT NULL CHECK (json_valid(manifest)),
  readme     TEXT NOT NULL,
  module     TEXT NOT NULL CHECK (length(module) = 64),
  size       INTEGER NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('published', 'deprecated', 'withdrawn', 'killed')),
  note       TEXT NOT NULL,
  downloads  INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX packages_version ON packages (name, version);

CREATE TABLE kills (
  hash       TEXT PRIMARY KEY CHECK (length(hash) = 64),
  reason     TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE library_files (
  person_id  TEXT NOT NULL REFERENCES accounts (id),
  path       TEXT NOT NULL CHECK (length(path) BETWEEN 1 AND 500),
  version    INTEGER NOT NULL, -- the newest
  hash       TEXT REFERENCES files (hash), -- of the newest version, null for a deleted file
  size       INTEGER NOT NULL,
  media_type TEXT NOT NULL CHECK (length(media_type) <= 200),
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX library_files_hash ON library_files (hash) WHERE hash IS NOT NULL;

CREATE TABLE library_versions (
  person_id       TEXT NOT NULL REFERENCES accounts (id),
  path            TEXT NOT NULL CHECK (length(path) BETWEEN 1 AND 500),
  version         INTEGER NOT NULL,
  hash            TEXT REFERENCES files (hash), -- null for a deletion
  size            INTEGER NOT NULL,
  media_type      TEXT NOT NULL CHECK (length(media_type) <= 200),
  restores        INTEGER NOT NULL, -- the version whose content this one has again, 0 for none
  agent_id        TEXT NOT NULL, -- the agent that wrote it, empty for the person
  agent           TEXT NOT NULL CHECK (length(agent) <= 300), -- its handle
  conversation_id TEXT NOT NULL, -- where the agent was asked
  task_id         TEXT NOT NULL, -- the task in which it wrote
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (person_id, path, version)
) STRICT, WITHOUT ROWID;

CREATE INDEX library_versions_hash ON library_versions (hash) WHERE hash IS NOT NULL;

CREATE INDEX library_versions_task ON library_versions (task_id) WHERE task_id <> '';

CREATE TABLE library_texts (
  person_id TEXT NOT NULL REFERENCES accounts (id),
  path      TEXT NOT NULL CHECK (length(path) BETWEEN 1 AND 500),
  text      TEXT NOT NULL,
  PRIMARY KEY (person_id, path)
) STRICT;

CREATE TABLE library_shares (
  id         TEXT PRIMARY KEY,
  person_id  TEXT NOT NULL REFERENCES accounts (id),
  path       TEXT NOT NULL CHECK (length(path) BETWEEN 1 AND 500),
  version    INTEGER NOT NULL, -- 0 for the newest
  secret     TEXT NOT NULL UNIQUE, -- the hash of the secret in the address
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX library_shares_file ON library_shares (person_id, path);

CREATE TRIGGER storage_library_new AFTER INSERT ON library_versions BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.person_id, octet_length(NEW.path) + 300, NEW.created_at);
END;

CREATE TRIGGER storage_library_gone AFTER DELETE ON library_versions BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.person_id, - octet_length(OLD.path) - 300, 0);
END;

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

CREATE TABLE settings (
  name     TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 40),
  value    TEXT NOT NULL CHECK (length(value) <= 20000),
  previous TEXT CHECK (length(previous) <= 20000), -- NULL if it was not set before
  set_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE daily_figures (
  day   INTEGER NOT NULL, -- days since 1970
  name  TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 40),
  value INTEGER NOT NULL,
  PRIMARY KEY (day, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_people ON tasks (created_at, agent_id, caller_id, caller_kind) WHERE caller_kind IN ('person', 'operator');

CREATE INDEX agents_owner ON agents (owner_id, id);

CREATE INDEX packages_account ON packages (account_id, id);

CREATE TABLE kill_notices (
  portal_id  TEXT NOT NULL,
  hash       TEXT NOT NULL CHECK (length(hash) = 64),
  host       TEXT NOT NULL, -- of the portal
  package    TEXT NOT NULL, -- name/version
  reason     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (portal_id, hash)
) STRICT, WITHOUT ROWID;

CREATE VIEW storage_items AS
  SELECT CASE charged WHEN '' THEN sender_kind ELSE substr(charged, 1, instr(charged, ' ') - 1) END AS kind,
      CASE charged WHEN '' THEN sender_id ELSE substr(charged, instr(charged, ' ') + 1) END AS id,
      octet_length(body) + 600 AS bytes FROM messages
  UNION ALL SELECT caller_kind, caller_id, octet_length(via) + 800 FROM tasks
  UNION ALL SELECT CASE WHEN a.owner_id IS NULL THEN t.caller_kind ELSE 'agent' END,
      CASE WHEN a.owner_id IS NULL THEN t.caller_id ELSE t.agent_id END,
      octet_length(t.artifacts) + octet_length(t.checkpoint) + octet_length(t.long_checkpoint)
    FROM tasks t JOIN agents a ON a.id = t.agent_id
    WHERE t.artifacts <> '' OR t.checkpoint <> '' OR t.long_checkpoint <> ''
  UNION ALL SELECT 'agent', id, octet_length(spec) + COALESCE(octet_length(secret), 0) + 1000 FROM agents
  UNION ALL SELECT 'agent', agent_id, octet_length(spec) + octet_length(note) + 300 FROM agent_versions
  UNION ALL SELECT 'agent', s.agent_id, octet_length(r.document) + 500 FROM releases r JOIN servers s ON s.name = r.name
    WHERE s.agent_id IS NOT NULL
  UNION ALL SELECT CASE WHEN account_id IS NULL THEN 'guest' ELSE 'person' END, COALESCE(account_id, id),
      octet_length(label) + 500 FROM credentials WHERE account_id IS NOT NULL OR kind = 'guest'
  UNION ALL SELECT owner_kind, owner_id, octet_length(url) + octet_length(secret) + 800 FROM hooks
  UNION ALL SELECT o.owner_kind, o.owner_id, f.size + 300 FROM uploads o JOIN files f ON f.hash = o.hash
  UNION ALL SELECT 'person', account_id, octet_length(title) + octet_length(query) + 300 FROM searches
  UNION ALL SELECT creator_kind, creator_id, 500 FROM room_links
  UNION ALL SELECT reporter_kind, reporter_id, octet_length(text) + 500 FROM reports
  UNION ALL SELECT 'person', account_id, size + 300 FROM modules
  UNION ALL SELECT 'person', person_id, octet_length(text) + 300 FROM memories
  UNION ALL SELECT 'person', person_id, octet_length(path) + 300 FROM library_versions
  UNION ALL SELECT 'person', person_id, octet_length(text) FROM library_texts;

CREATE VIEW storage_sums AS
  SELECT kind, id, SUM(bytes) AS bytes FROM (
    SELECT CASE WHEN kind IN ('person', 'operator') THEN 'account' WHEN kind = 'agent' THEN 'agent'
        WHEN kind IN ('guest', 'portal') AND instr(id, '/') > 0 THEN 'portal' WHEN kind = 'guest' THEN 'guest' ELSE '' END AS kind,
      CASE WHEN kind IN ('guest', 'portal') AND instr(id, '/') > 0 THEN substr(id, 1, instr(id, '/') - 1) ELSE id END AS id,
      bytes FROM storage_items
    UNION ALL SELECT 'account', a.owner_id, i.bytes FROM storage_items i JOIN agents a ON a.id = i.id
      WHERE i.kind = 'agent' AND a.owner_id IS NOT NULL
    UNION ALL SELECT 'address', s.place, i.bytes FROM storage_items i JOIN storage s ON s.kind = 'guest' AND s.id = i.id
      WHERE i.kind = 'guest' AND s.place <> ''
  ) WHERE kind <> '' AND id <> '' GROUP BY kind, id;

CREATE TRIGGER storage_library_text_new AFTER INSERT ON library_texts BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', NEW.person_id, octet_length(NEW.text),
    COALESCE((SELECT f.updated_at FROM library_files f WHERE f.person_id = NEW.person_id AND f.path = NEW.path), 0));
END;

CREATE TRIGGER storage_library_text_gone AFTER DELETE ON library_texts BEGIN
  INSERT INTO storage_changes (kind, id, bytes, at) VALUES ('person', OLD.person_id, - octet_length(OLD.text), 0);
END;

CREATE TABLE push_browsers (
  session_id TEXT PRIMARY KEY REFERENCES credentials (id) ON DELETE CASCADE,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  host       TEXT NOT NULL CHECK (length(host) <= 300), -- of the push service
  secret     BLOB NOT NULL CHECK (length(secret) <= 4000), -- sealed address and keys
  texts      INTEGER NOT NULL DEFAULT 0, -- 1 if the text of notices is sent
  failures   INTEGER NOT NULL DEFAULT 0, -- failed attempts in a row
  next_at    INTEGER NOT NULL DEFAULT 0, -- no attempt before
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX push_browsers_account ON push_browsers (account_id);

CREATE TABLE push_notices (
  notice_id  TEXT NOT NULL REFERENCES notices (id) ON DELETE CASCADE,
  session_id TEXT NOT NULL REFERENCES push_browsers (session_id) ON DELETE CASCADE,
  PRIMARY KEY (notice_id, session_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX push_notices_session ON push_notices (session_id, notice_id);
