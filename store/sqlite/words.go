package sqlite

import (
	"context"
	"strings"

	"agentsite/store/engine"
)

// words is the full-text index by FTS5. It implements engine.WordIndex.
type words struct{ db *DB }

// Words implements engine.DB.
func (f *DB) Words() engine.WordIndex { return words{f} }

func (words) AddWords(t engine.Tx, id int64, list string) error {
	_, err := t.Exec(`INSERT INTO said_words (rowid, words) VALUES (?, ?)`, id, list)
	return err
}

func (words) EmptyWords(t engine.Tx) error {
	_, err := t.Exec(`INSERT INTO said_words (said_words) VALUES ('delete-all')`)
	return err
}

// matchSQL reads hits in the order of the index, newest first, so that nothing is sorted.
const matchSQL = `SELECT s.id, s.conversation_id, s.seq FROM said_words w CROSS JOIN said s ON s.id = w.rowid
	WHERE w.said_words MATCH ? AND w.rowid < ? ORDER BY w.rowid DESC LIMIT ?`

func (w words) MatchWords(ctx context.Context, dest any, groups []engine.WordGroup, before int64, limit int) error {
	return w.db.List(ctx, dest, matchSQL, matchQuery(groups), before, limit)
}

// matchQuery returns the FTS5 query of groups. Phrases are quoted, so that no input is read as syntax.
func matchQuery(groups []engine.WordGroup) string {
	var b strings.Builder
	for i, g := range groups {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteByte('(')
		for i, p := range g.Phrases {
			if i > 0 {
				b.WriteString(" AND ")
			}
			b.WriteString(`"` + strings.ReplaceAll(p, `"`, `""`) + `"`)
		}
		if g.Prefix {
			b.WriteString(" *")
		}
		b.WriteByte(')')
	}
	return b.String()
}

// deletedWords reports whether the index still contains words of deleted texts. FTS5 only marks deleted
// rows, on pages with the highest ids ("tombstones").
const deletedWords = `SELECT EXISTS (SELECT 1 FROM said_words_data WHERE id >= 1 << 53)`

// purgePages bounds the pages of the index that one transaction rewrites.
const purgePages = 256

// PurgeWords rewrites the index, a part in each transaction, and reads one row if no text was deleted
// since the last call.
func (w words) PurgeWords(ctx context.Context, write func(context.Context, func(engine.Tx) error) error) error {
	var marked bool
	if err := w.db.Get(ctx, &marked, deletedWords); err != nil || !marked {
		return err
	}
	pages := -purgePages // A negative number begins a merge of all parts; later steps continue it.
	for more := true; more; pages = purgePages {
		err := write(ctx, func(t engine.Tx) error {
			var before, after int64
			if err := t.Get(&before, `SELECT total_changes()`); err != nil {
				return err
			}
			if _, err := t.Exec(`INSERT INTO said_words (said_words, rank) VALUES ('merge', ?)`, pages); err != nil {
				return err
			}
			err := t.Get(&after, `SELECT total_changes()`)
			more = after-before >= 2 // FTS5 documents fewer than two changes as the end of a merge.
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
