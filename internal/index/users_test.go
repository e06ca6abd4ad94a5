package index_test

import (
	"slices"
	"testing"

	"agentsite/internal/hub"
	"agentsite/internal/index"
)

// Without words the most used agents come first, those that are not alive last. Each page goes on where the one before
// ended.
func TestSearch_OrdersByUse(t *testing.T) {
	t.Parallel()
	x := index.New()
	for _, name := range []string{"ant", "bee", "cat", "dog", "eel", "fox"} {
		a := hub.Agent{ID: name, Name: name, Title: name, Description: "An animal.", Kind: hub.A2A, Visibility: hub.Public,
			Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{State: hub.Alive}}
		if name == "bee" {
			a.Liveness.State = hub.Unreachable
		}
		x.Put(a)
	}
	list := func(q hub.Query) (names []string, users []int) {
		t.Helper()
		for {
			page, err := x.Search(q)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Results {
				names, users = append(names, r.Agent.Name), append(users, r.Users)
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				return names, users
			}
		}
	}
	before := x.State()
	x.SetUsers(map[string]int{"eel": 2, "cat": 7, "dog": 2, "bee": 9, "gone": 50, "ant": 0})
	if x.State() == before {
		t.Error("the state must change with the counts")
	}
	before = x.State()
	x.SetUsers(map[string]int{"eel": 2, "cat": 7, "dog": 2, "bee": 9, "gone": 50, "ant": 0})
	if x.State() != before {
		t.Error("equal counts must not change the state")
	}
	want := []string{"cat", "dog", "eel", "ant", "fox", "bee"}
	for limit := 1; limit <= 7; limit++ {
		for _, sort := range []string{"", hub.SortUsed} {
			names, users := list(hub.Query{Limit: limit, Sort: sort})
			if !slices.Equal(names, want) || !slices.Equal(users, []int{7, 2, 2, 0, 0, 9}) {
				t.Errorf("%d a page, sort %q: %v %v", limit, sort, names, users)
			}
		}
	}
	if names, _ := list(hub.Query{Sort: hub.SortUsed, Text: "animal"}); !slices.Equal(names, want) {
		t.Errorf("with words: %v", names)
	}
	if names, _ := list(hub.Query{Sort: hub.SortName}); names[0] != "ant" {
		t.Errorf("by name: %v", names)
	}
}

// Words of grammar match nothing beside others, and a misspelt word finds only words that are one or two letters away.
func TestSearch_FindsNearWordsOnly(t *testing.T) {
	t.Parallel()
	x := index.New()
	for name, text := range map[string]string{"moon": "Says how the moon looks tonight, and when it is full.",
		"calc": "Calculates exactly: arithmetic and units.", "cook": "Plans a dinner for the week.", "horn": "Says when the fog comes in."} {
		x.Put(hub.Agent{ID: name, Name: name, Title: name, Description: text, Kind: hub.A2A, Visibility: hub.Public,
			Status: hub.Status{State: hub.Active}, Liveness: hub.Liveness{State: hub.Alive}})
	}
	for text, want := range map[string]string{"moom": "moon", "calculats": "calc", "diner": "cook", "arithmatic": "calc",
		"the weather of it": "", "mouse": "", "paint my house": "", "born": "horn",
		"zzz": "", "loan": ""} {
		page, err := x.Search(hub.Query{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range page.Results {
			got += r.Agent.Name
		}
		if got != want {
			t.Errorf("%q found %q, want %q", text, got, want)
		}
	}
}
