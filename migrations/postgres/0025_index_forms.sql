-- Words have one form for half-width and presentation forms, Arabic and Greek letters and digits, and are also
-- indexed without the prefixes that Arabic and Hebrew attach. The messages are indexed anew, in the background.

DELETE FROM said_words;
DELETE FROM said;
UPDATE conversations SET words_seq = 0 WHERE words_seq > 0;
