package store_test

import (
	"slices"
	"testing"

	"agentsite/internal/testing/scripttest"
	"agentsite/internal/testing/storetest"
)

// The manual says: the beginning of a word is enough.
func TestSearchMessages_FindsTheBeginningOfAWordInEveryScript(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	for _, s := range scripttest.Sentences() {
		storetest.Say(t, db, c, ada, s.Text)
	}
	indexAll(t, db)
	for _, s := range scripttest.Sentences() {
		for _, query := range s.Finds {
			if got := finds(t, db, ada, query); !slices.Equal(got, []string{s.Text}) {
				t.Errorf("%s: %q finds %q", s.Script, query, got)
			}
		}
	}
}
