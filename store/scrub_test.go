package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/internal/testing/storetest"
	"agentsite/store"
	"agentsite/store/sqlite"
)

// scrubRound runs one round of a scrub and returns the logged messages and the faults. With slices of no time every
// table is read in the smallest steps.
func scrubRound(t *testing.T, db *storetest.DB, slice time.Duration) (logged, faults []string, slices int) {
	t.Helper()
	s := store.NewScrub(db.DB, nil, slice, func(fault string) { logged = append(logged, fault) })
	for done := false; !done; slices++ {
		var err error
		if done, err = s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	state := s.State()
	if state.Completed.IsZero() {
		t.Error("the round has no end")
	}
	return logged, state.Faults, slices
}

// damaged returns a filled database in whose file change was made while it was closed. at is the place of
// the text of an answer.
func damaged(t *testing.T, change func(file []byte, at int)) *storetest.DB {
	t.Helper()
	db := filled(t)
	dir := storetest.Dir(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, sqlite.FileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(b, []byte("an answer of some length"))
	change(b, at)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return storetest.Open(t, dir)
}

func TestScrub(t *testing.T) {
	t.Parallel()
	storetest.SkipOnPostgres(t)
	const pageBytes = 4096
	for _, tt := range []struct {
		name, says string
		change     func(file []byte, at int)
	}{
		{"sound", "", func([]byte, int) {}},
		{"another text", "is not what was said there", func(b []byte, at int) { b[at] = 'A' }},
		{"a page that is none", "table messages", func(b []byte, at int) { clear(b[at-at%pageBytes:][:8]) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := damaged(t, tt.change)
			steps := 0
			for _, slice := range []time.Duration{time.Hour, 0} {
				logged, faults, n := scrubRound(t, db, slice)
				if slice == 0 && n <= steps {
					t.Errorf("%d slices of no time, %d of an hour", n, steps)
				}
				steps = n
				if len(logged) != len(faults) {
					t.Errorf("logged %q, found %q", logged, faults)
				}
				if tt.says == "" && len(faults) > 0 || tt.says != "" && !strings.Contains(strings.Join(faults, "\n"), tt.says) {
					t.Errorf("%v: %q", slice, faults)
				}
				if tt.says != "" && !strings.Contains(strings.Join(faults, "\n"), "Conversation ") {
					t.Errorf("no conversation is named: %q", faults)
				}
			}
		})
	}
}

// A portal writes between the slices of a round.
func TestScrub_BetweenWrites(t *testing.T) {
	t.Parallel()
	db := filled(t)
	ada := storetest.Account(t, db, "bob")
	helper := storetest.Agent(t, db, "echo2", ada)
	room := storetest.Conversation(t, db, ada, helper)
	s := store.NewScrub(db.DB, nil, 0, func(fault string) { t.Error(fault) })
	said := 0
	for done := false; !done; {
		var err error
		if done, err = s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if said < 200 {
			said++
			storetest.Say(t, db, room, ada, "more")
		}
	}
	if faults := s.State().Faults; len(faults) > 0 {
		t.Error(faults)
	}
}
