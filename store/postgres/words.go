package postgres

import (
	"context"
	"strconv"
	"strings"

	"agentsite/store/engine"
)

// maxPosition is the last position of a word in a text that PostgreSQL keeps.
const maxPosition = 16383

// words is the full-text index by tsvector. It implements engine.WordIndex. Words are divided and folded
// by the caller and cast, so that no dictionary of the server changes them.
type words struct{ db *DB }

// Words implements engine.DB.
func (d *DB) Words() engine.WordIndex { return words{d} }

func (words) AddWords(t engine.Tx, id int64, list string) error {
	return t.Send(`INSERT INTO said_words (rowid, words) VALUES (?, CAST(? AS tsvector))`, id, vector(list))
}

func (words) EmptyWords(t engine.Tx) error {
	_, err := t.Exec(`DELETE FROM said_words`)
	return err
}

func (w words) MatchWords(ctx context.Context, dest any, groups []engine.WordGroup, before int64, limit int) error {
	return w.db.List(ctx, dest, `SELECT s.id, s.conversation_id, s.seq FROM said_words w JOIN said s ON s.id = w.rowid
		WHERE w.words @@ CAST(? AS tsquery) AND w.rowid < ? ORDER BY w.rowid DESC LIMIT ?`, matchQuery(groups), before,
		limit)
}

// PurgeWords does nothing: autovacuum removes deleted rows.
func (words) PurgeWords(context.Context, func(context.Context, func(engine.Tx) error) error) error {
	return nil
}

// vector returns the tsvector of words in the form that PostgreSQL reads.
func vector(list string) string {
	var b strings.Builder
	for i, word := range strings.Fields(list) {
		b.WriteString(quoteLexeme(word))
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(min(i+1, maxPosition)))
		b.WriteByte(' ')
	}
	return b.String()
}

// matchQuery returns the tsquery of groups.
func matchQuery(groups []engine.WordGroup) string {
	var b strings.Builder
	for i, g := range groups {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteByte('(')
		for i, p := range g.Phrases {
			if i > 0 {
				b.WriteString(" & ")
			}
			b.WriteByte('(')
			for k, word := range strings.Fields(p) {
				if k > 0 {
					b.WriteString(" <-> ")
				}
				b.WriteString(quoteLexeme(word))
			}
			if g.Prefix && i == len(g.Phrases)-1 {
				b.WriteString(":*")
			}
			b.WriteByte(')')
		}
		b.WriteByte(')')
	}
	return b.String()
}

// quoteLexeme returns a word quoted, so that no character is read as syntax.
func quoteLexeme(word string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(word, `\`, `\\`), `'`, `''`) + "'"
}
