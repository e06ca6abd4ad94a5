package transfer_test

import (
	"path/filepath"
	"testing"

	"agentsite/internal/testing/storetest"
	"agentsite/store/sqlite"
	"agentsite/store/transfer"
)

// A copy that differs in one value, one row or one head is refused.
func TestCompare_FindsEveryDifference(t *testing.T) {
	storetest.SkipOnPostgres(t)
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	for range 3 {
		storetest.Say(t, db, c, ada, "a text")
	}
	path := filepath.Join(storetest.Dir(db), sqlite.FileName)
	for name, damage := range map[string]string{
		"nothing":        `SELECT 1`,
		"a value":        `UPDATE conversations SET updated_at = updated_at + 1`,
		"an empty text":  `UPDATE accounts SET email = 'x' WHERE name = 'ada'`,
		"a missing row":  `DELETE FROM client_ids WHERE seq = 2`,
		"a row more":     `INSERT INTO counters (name, value) VALUES ('more', 1)`,
		"rows that swap": `UPDATE client_ids SET seq = 5 - seq WHERE seq > 1`,
	} {
		dir := t.TempDir()
		var copied []transfer.Copied
		err := transfer.ReadFile(t.Context(), path, func(from transfer.Source) (err error) {
			copied, err = transfer.WriteFile(t.Context(), from, dir)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, sqlite.FileName)
		pool, err := sqlite.Connect(to, sqlite.FillDSN(to), 1)
		if err == nil {
			_, err = pool.ExecContext(t.Context(), damage)
			pool.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		heads := 0
		err = transfer.ReadFile(t.Context(), to, func(s transfer.Source) (err error) {
			heads, err = s.Compare(t.Context(), copied)
			return err
		})
		if (err == nil) != (name == "nothing") || name == "nothing" && heads != 1 {
			t.Errorf("%s: %v, %d heads", name, err, heads)
		}
	}
}
