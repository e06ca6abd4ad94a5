-- +goose Up
-- Invitations of people to conversations that they are not members of. A row
-- stays after the person declined, so that the same inviter cannot ask for
-- the same conversation again.
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

-- The invitations that an account sent, by day, also those to conversations
-- that were deleted.
CREATE TABLE invitation_days (
  inviter_id TEXT NOT NULL,
  day        INTEGER NOT NULL,
  sent       INTEGER NOT NULL,
  PRIMARY KEY (inviter_id, day)
) STRICT, WITHOUT ROWID;

-- The inviters of whom a person accepted an invitation: they add the person to
-- other conversations without asking.
CREATE TABLE accepted_inviters (
  person_id   TEXT NOT NULL,
  inviter_id  TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, inviter_id)
) STRICT, WITHOUT ROWID;

-- People who share a conversation already accepted each other.
INSERT INTO accepted_inviters (person_id, inviter_id, accepted_at)
SELECT DISTINCT a.member_id, b.member_id, 0
FROM members a JOIN members b ON b.conversation_id = a.conversation_id
WHERE a.kind = 'person' AND b.kind = 'person' AND a.member_id <> b.member_id AND a.left_at = 0 AND b.left_at = 0;

-- The people that a person does not let invite or write to them.
CREATE TABLE blocks (
  person_id  TEXT NOT NULL,
  blocked_id TEXT NOT NULL,
  handle     TEXT NOT NULL CHECK (length(handle) <= 300),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, blocked_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX blocks_by ON blocks (blocked_id, person_id);

-- The words of messages are indexed anew in the background, each with its
-- conversation, so that a search does not read the words of others.
DROP TABLE said_words;
CREATE VIRTUAL TABLE said_words USING fts5 (words, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
DELETE FROM said;
UPDATE conversations SET words_seq = 0 WHERE words_seq > 0;
