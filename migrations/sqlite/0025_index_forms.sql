-- +goose Up
-- Words have one form for half-width and presentation forms, Arabic and Greek letters and digits, and are also
-- indexed without the prefixes that Arabic and Hebrew attach. The messages are indexed anew, in the background.
DROP TABLE said_words;
CREATE VIRTUAL TABLE said_words USING fts5 (words, content='', contentless_delete=1, tokenize='ascii');
DELETE FROM said;
UPDATE conversations SET words_seq = 0 WHERE words_seq > 0;

-- +goose Down
-- A database is never taken back: restore the copy made before the upgrade.
SELECT 1;
