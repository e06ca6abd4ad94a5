package engine

import "context"

// WordIndex is the full-text index said_words of the rows in said, which have the same ids; its rows are deleted like
// those of other tables. It treats letters alike that differ in case, and Latin ones that differ in diacritics.
type WordIndex interface {
	// AddWords indexes words, separated by spaces, under an id that is not in the index.
	AddWords(t Tx, id int64, words string) error
	// EmptyWords removes all.
	EmptyWords(t Tx) error
	// MatchWords reads rows with the columns id, conversation_id and seq of said into dest: those that
	// match one of the groups and have an id below before, the greatest id first, at most limit.
	MatchWords(ctx context.Context, dest any, groups []WordGroup, before int64, limit int) error
	// PurgeWords removes the remains of deleted words from the disk, for privacy.
	PurgeWords(ctx context.Context, write func(context.Context, func(Tx) error) error) error
}

// WordGroup matches a text that has all phrases. A phrase is adjacent words, separated by spaces. With
// Prefix the last word of the last phrase matches as the beginning of a word.
type WordGroup struct {
	Phrases []string
	Prefix  bool
}
