package linediff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentsite/templates"
)

// sides are the two texts that a difference is made of.
func sides(list []templates.DiffLine) (before, after []string) {
	for _, l := range list {
		if l.Mark != templates.Added {
			before = append(before, l.Text)
		}
		if l.Mark != templates.Removed {
			after = append(after, l.Text)
		}
	}
	return before, after
}

func TestCompare_HoldsBothTextsAndMarksLittle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		make := func() []string {
			out := []string(nil)
			for range r.IntN(12) {
				out = append(out, string(rune('a'+r.IntN(4))))
			}
			return out
		}
		b, a := make(), make()
		d := Compare(b, a)
		if gb, ga := sides(d); !slices.Equal(gb, b) || !slices.Equal(ga, a) {
			t.Fatalf("%q to %q became %v", b, a, d)
		}
	}
	d := Compare(strings.Split("one two three four", " "), strings.Split("one three four five", " "))
	if got, want := fmt.Sprint(d), "[{same one} {removed two} {same three} {same four} {added five}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	long := slices.Repeat([]string{"x", "y"}, 2000)
	other := slices.Repeat([]string{"z", "x"}, 2000)
	if gb, ga := sides(Compare(long, other)); !slices.Equal(gb, long) || !slices.Equal(ga, other) {
		t.Error("texts too long to compare are not shown whole")
	}
}

func TestFold_LeavesOutDistantLines(t *testing.T) {
	t.Parallel()
	before := strings.Split("1 2 3 4 5 6 7 8 9", " ")
	after := slices.Clone(before)
	after[4] = "V"
	var got []string
	for _, l := range Fold(Compare(before, after)) {
		got = append(got, l.Text)
	}
	if want := []string{"2 lines as before", "3", "4", "5", "V", "6", "7", "2 lines as before"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
