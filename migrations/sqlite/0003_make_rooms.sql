-- +goose Up
-- A message may be about an earlier one: a text quotes it, an answer was given
-- instead of it, an edit, a removal or a reaction changes how it is shown.
ALTER TABLE messages ADD COLUMN target INTEGER NOT NULL DEFAULT 0;
-- What became of a message since. The chain does not cover these. Of one that
-- was removed, and of its edits, body is empty and body_hash what it hashed to.
ALTER TABLE messages ADD COLUMN edit_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN gone_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN newer_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN reacted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN body_hash BLOB;
CREATE INDEX messages_edits ON messages (conversation_id, target) WHERE kind = 'edit';

-- set_seq is the message that set it.
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

-- Who answers what is said to nobody, what those who join see of before, and
-- how far agents may call each other for one message of a person.
ALTER TABLE conversations ADD COLUMN speaks TEXT NOT NULL DEFAULT 'alone' CHECK (speaks IN ('alone', 'nobody', 'agent', 'turns'));
ALTER TABLE conversations ADD COLUMN speaker_id TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN spoke_id TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN past TEXT NOT NULL DEFAULT 'all' CHECK (past IN ('all', 'nothing'));
ALTER TABLE conversations ADD COLUMN hops INTEGER NOT NULL DEFAULT 3;
ALTER TABLE conversations ADD COLUMN turns INTEGER NOT NULL DEFAULT 8;
ALTER TABLE conversations ADD COLUMN budget INTEGER NOT NULL DEFAULT 262144;
ALTER TABLE conversations ADD COLUMN branched_from TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN branched_seq INTEGER NOT NULL DEFAULT 0;

-- A member sees the messages after from_seq.
ALTER TABLE members ADD COLUMN from_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN pinned_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN archived_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN notify TEXT NOT NULL DEFAULT '' CHECK (notify IN ('', 'mentions', 'nothing'));

-- root_seq is the message of a person that the work goes back to (of tasks of
-- before: 0), hop how many agents are between, replaces the answer that is
-- asked for again, share what of the conversation goes along.
ALTER TABLE tasks ADD COLUMN root_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN hop INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN replaces INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN share TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_root ON tasks (conversation_id, root_seq) WHERE root_seq > 0;
-- A page asks what is going on; a long conversation has many tasks that ended.
CREATE INDEX tasks_active ON tasks (conversation_id, id) WHERE state IN ('submitted', 'working', 'input_required', 'auth_required');

-- Links to a conversation: join lets people in, read shows what was said up to
-- up_to_seq to whoever has the link.
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

-- Where a person was told that their text goes, and what of a conversation
-- they let go along.
CREATE TABLE disclosures (
  member_kind TEXT NOT NULL,
  member_id   TEXT NOT NULL,
  agent_id    TEXT NOT NULL REFERENCES agents (id),
  host        TEXT NOT NULL CHECK (length(host) <= 300),
  share       TEXT NOT NULL CHECK (share IN ('all', 'own', 'nothing')),
  told_at     INTEGER NOT NULL,
  PRIMARY KEY (member_kind, member_id, agent_id)
) STRICT, WITHOUT ROWID;

-- Files by the SHA-256 of what they hold, which is in the data folder.
-- loose_at is since when no message holds it, 0 while one does.
CREATE TABLE files (
  hash       TEXT PRIMARY KEY CHECK (length(hash) = 64),
  size       INTEGER NOT NULL,
  media_type TEXT NOT NULL CHECK (length(media_type) <= 200),
  created_at INTEGER NOT NULL,
  loose_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX files_loose ON files (loose_at) WHERE loose_at > 0;

-- Who sent a file: it counts for their quota, and they may use it.
CREATE TABLE uploads (
  owner_kind TEXT NOT NULL,
  owner_id   TEXT NOT NULL,
  hash       TEXT NOT NULL REFERENCES files (hash),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner_kind, owner_id, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX uploads_hash ON uploads (hash);

-- The messages that hold a file: who may read one of them may read it.
CREATE TABLE file_uses (
  hash            TEXT NOT NULL REFERENCES files (hash),
  conversation_id TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  PRIMARY KEY (hash, conversation_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_uses_message ON file_uses (conversation_id, seq);

-- What a person decided about being told.
CREATE TABLE chat_prefs (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  notify     TEXT NOT NULL DEFAULT '' CHECK (notify IN ('', 'mentions', 'nothing')),
  quiet_from INTEGER NOT NULL DEFAULT 0 CHECK (quiet_from BETWEEN 0 AND 1439),
  quiet_to   INTEGER NOT NULL DEFAULT 0 CHECK (quiet_to BETWEEN 0 AND 1439),
  zone       TEXT NOT NULL DEFAULT '' CHECK (length(zone) <= 64)
) STRICT, WITHOUT ROWID;

-- The words of messages, written after them by whoever searches or by and by.
-- said_words holds them under the id here, which grows with the time a message
-- was said (see store/words.go), so that the newest are found first.
CREATE TABLE said (
  id              INTEGER PRIMARY KEY,
  conversation_id TEXT NOT NULL,
  seq             INTEGER NOT NULL,
  UNIQUE (conversation_id, seq)
) STRICT;
CREATE VIRTUAL TABLE said_words USING fts5 (room, words, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
-- Up to where the words of a conversation are there.
ALTER TABLE conversations ADD COLUMN words_seq INTEGER NOT NULL DEFAULT 0;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
