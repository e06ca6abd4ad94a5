package store

import (
	"context"
	"time"

	"agentsite/internal/fault"
	"agentsite/store/engine"
)

const (
	// modelDays is the number of days for which the used tokens of the portal's model are kept.
	modelDays = 60
	// maxTokens bounds a value far above the tokens of a model in a day, so that sums cannot overflow.
	maxTokens = 1 << 50
)

// Spent implements prompt.Ledger: it returns the tokens used on a day (2006-01-02) by spender.
func (d *DB) Spent(ctx context.Context, day string) (map[string]int64, error) {
	var rows []struct {
		Who    string `db:"who"`
		Tokens int64  `db:"tokens"`
	}
	if err := d.List(ctx, &rows, `SELECT who, tokens FROM model_days WHERE day = ?`, day); err != nil {
		return nil, engine.MapError(err)
	}
	out := make(map[string]int64, len(rows))
	for _, r := range rows {
		out[r.Who] = r.Tokens
	}
	return out, nil
}

// Add implements prompt.Ledger. It also deletes entries older than modelDays before the day. Negative
// tokens are an Invalid fault.
func (d *DB) Add(ctx context.Context, day, who string, tokens int64) error {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil || tokens < 0 {
		return fault.New(fault.Invalid, "These are no tokens of a day.")
	}
	oldest := at.AddDate(0, 0, -modelDays).Format(time.DateOnly)
	return d.Write(ctx, func(t engine.Tx) error {
		if _, err := t.Exec(`INSERT INTO model_days (day, who, tokens) VALUES (?, ?, ?)
			ON CONFLICT (day, who) DO UPDATE SET tokens = MIN(model_days.tokens + excluded.tokens, ?)`, day, who,
			min(tokens, maxTokens), maxTokens); err != nil {
			return err
		}
		_, err := t.Exec(`DELETE FROM model_days WHERE day < ?`, oldest)
		return err
	})
}
