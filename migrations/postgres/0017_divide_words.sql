-- Words are divided in another way than before: the messages are indexed anew, in the background.

DELETE FROM said_words;
DELETE FROM said;
UPDATE conversations SET words_seq = 0 WHERE words_seq > 0;
