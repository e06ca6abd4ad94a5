package store_test

import (
	"math"
	"slices"
	"testing"

	"agentsite/internal/figures"
	"agentsite/internal/testing/storetest"
)

// A sample replaces the figures of its day only, and what is older than the oldest kept day is deleted.
func TestFigures(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	save := func(day, oldest int64, values map[string]int64) {
		t.Helper()
		if err := db.Figures.SaveFigures(t.Context(), day, values, oldest); err != nil {
			t.Fatal(err)
		}
	}
	list := func(from int64, want ...figures.Figure) {
		t.Helper()
		got, err := db.Figures.Figures(t.Context(), from)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("from %d: %v, %v\nwant %v", from, got, err, want)
		}
	}
	list(0)
	save(100, 1, map[string]int64{figures.People: 1, figures.Agents: 4})
	save(101, 1, map[string]int64{figures.People: 2, figures.Disk: math.MaxInt64})
	save(101, 1, map[string]int64{figures.People: 3})
	save(102, 1, map[string]int64{figures.People: 0})
	list(0, figures.Figure{Day: 100, Name: figures.Agents, Value: 4}, figures.Figure{Day: 100, Name: figures.People, Value: 1},
		figures.Figure{Day: 101, Name: figures.Disk, Value: math.MaxInt64}, figures.Figure{Day: 101, Name: figures.People, Value: 3},
		figures.Figure{Day: 102, Name: figures.People})
	list(102, figures.Figure{Day: 102, Name: figures.People})
	list(103)
	save(103, 102, map[string]int64{figures.Messages: 7})
	list(0, figures.Figure{Day: 102, Name: figures.People}, figures.Figure{Day: 103, Name: figures.Messages, Value: 7})
}

// A read returns the oldest days first and no more than are kept.
func TestFigures_ReadsAreBounded(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	values := make(map[string]int64)
	for i, name := range figures.Names() {
		values[name] = int64(i)
	}
	for day := range int64(figures.MaxDays + 2) {
		if err := db.Figures.SaveFigures(t.Context(), day, values, 0); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Figures.Figures(t.Context(), 0)
	if err != nil || len(got) != figures.MaxDays*len(values) {
		t.Fatalf("%d figures, %v", len(got), err)
	}
	if last := got[len(got)-1].Day; got[0].Day != 0 || last != figures.MaxDays-1 {
		t.Errorf("days %d to %d", got[0].Day, last)
	}
}
