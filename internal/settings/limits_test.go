package settings

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestParseLimits(t *testing.T) {
	l, err := parseLimits(" running=7 ,running-per-agent=3,")
	if err != nil || l.Work.Running != 7 || l.Work.RunningPerAgent != 3 {
		t.Fatalf("got %+v, %v", l, err)
	}
	if l, err := parseLimits(""); err != nil || l != DefaultLimits() {
		t.Fatalf("nothing given: %+v, %v", l, err)
	}
	for text, want := range map[string]string{
		"running":                           "NAME=VALUE",
		"runing=3":                          "no limit of that name",
		"running=1":                         "from 2 to 100000",
		"running=-4":                        "whole number",
		"running=99999999999":               "from 2",
		"running=3,running=4":               "given twice",
		"reading-reserve=40M":               "at most half of reading",
		"reading=16M,reading-per-reader=9M": "at most the rest",
	} {
		if _, err := parseLimits(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}

// Every default lies within its bounds and is read back from the form in which it is printed.
func TestLimits_PrintWhatTheyParse(t *testing.T) {
	l := DefaultLimits()
	for _, one := range l.List() {
		v, err := one.parse(one.Value())
		if err != nil || v != *one.value {
			t.Errorf("%s: %s is read as %d, %v", one.Name, one.Value(), v, err)
		}
	}
	for _, unit := range []LimitUnit{UnitBytes, UnitDuration} {
		for _, v := range []int64{0, 1, 1023, 1024, 1 << 20, 3 << 30, 1<<40 + 1, 90_000} {
			one := Limit{Name: "x", Unit: unit, Max: 1 << 60, value: &v}
			if got, err := one.parse(one.Value()); err != nil || got != v {
				t.Errorf("%s %d: %s is read as %d, %v", unit, v, one.Value(), got, err)
			}
		}
	}
}

// The manual lists every bound with its default, in the order of List.
func TestLimits_StandInTheManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(string(page), -1) {
		got = append(got, row[1]+" "+row[2])
	}
	l := DefaultLimits()
	for _, one := range l.List() {
		want = append(want, one.Name+" "+one.Value())
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/operate/limits.md has\n%s\nand the settings have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
