// Package report is the table that the benchmarks print: the figures of a floor
// and of the portal, and the verdict on each bar. It measures nothing itself.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Line is one row of a table. Its parts are written as they are to be read; a
// part that was not measured is empty.
type Line struct {
	What string
	// Floor is the figure that the portal is compared with.
	Floor, Portal string
	Ratio         string
	// P50 and P99 hold both figures, that of the floor first.
	P50, P99 string
	// Others is the share of the machine that other programs used.
	Others string
	Bar    string
	// Judged: the run fails if the bar is missed. A bar that is not judged is
	// printed with its result.
	Judged bool
	Met    bool
	// Absolute: the bar is a time or a speed, which holds only on a machine as
	// fast as the one it was set on.
	Absolute bool
	// Doubt is the reason why this row cannot be judged, such as other programs
	// that used the machine.
	Doubt string
}

// Table collects lines. One goroutine uses it.
type Table struct {
	Out io.Writer
	// Slow is the reason why no absolute bar can be judged, empty if they can.
	// It is set before Print.
	Slow  string
	lines []Line
}

func (t *Table) verdict(l Line) string {
	result := "met"
	if !l.Met {
		result = "missed"
	}
	switch {
	case l.Bar == "":
		return ""
	case !l.Judged:
		return result + ", not judged here"
	case l.Doubt != "":
		return result + ", not judged: " + l.Doubt
	case l.Absolute && t.Slow != "":
		return result + ", not judged: " + t.Slow
	case !l.Met:
		return "MISSED"
	}
	return result
}

type column struct {
	name string
	of   func(Line) string
}

// columns are the possible columns; one that no line fills is left out.
var columns = []column{
	{"floor", func(l Line) string { return l.Floor }},
	{"portal", func(l Line) string { return l.Portal }},
	{"ratio", func(l Line) string { return l.Ratio }},
	{"p50", func(l Line) string { return l.P50 }},
	{"p99", func(l Line) string { return l.P99 }},
	{"others", func(l Line) string { return l.Others }},
	{"bar", func(l Line) string { return l.Bar }},
}

// Add adds a line and prints it.
func (t *Table) Add(l Line) {
	t.lines = append(t.lines, l)
	var b strings.Builder
	fmt.Fprintf(&b, "  %s:", l.What)
	for _, c := range columns {
		if s := c.of(l); s != "" {
			fmt.Fprintf(&b, " %s %s,", c.name, s)
		}
	}
	fmt.Fprintln(t.Out, strings.TrimSuffix(b.String(), ","))
}

// Print writes all lines as a Markdown table and returns how many bars were
// missed.
func (t *Table) Print() (missed int) {
	show := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return !slices.ContainsFunc(t.lines, func(l Line) bool { return c.of(l) != "" })
	})
	head, rule := "| row |", "|---|"
	for _, c := range show {
		head, rule = head+" "+c.name+" |", rule+"---|"
	}
	fmt.Fprintf(t.Out, "\n%s result |\n%s---|\n", head, rule)
	unjudged := 0
	for _, l := range t.lines {
		fmt.Fprintf(t.Out, "| %s |", l.What)
		for _, c := range show {
			fmt.Fprintf(t.Out, " %s |", cmp.Or(c.of(l), "–"))
		}
		verdict := t.verdict(l)
		fmt.Fprintf(t.Out, " %s |\n", verdict)
		switch {
		case verdict == "MISSED":
			missed++
		case strings.Contains(verdict, "not judged:"):
			unjudged++
		}
	}
	if unjudged > 0 {
		fmt.Fprintf(t.Out, "\n%d bars could not be judged in this run\n", unjudged)
	}
	return missed
}

// Join writes several figures of one kind.
func Join(list ...string) string { return strings.Join(list, " / ") }

// Median is the middle value, 0 of an empty list.
func Median[T ~int64 | ~float64](list []T) T {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// Percentile is the time within which a share of all ended, 0 of an empty list.
func Percentile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(times))
	return s[min(len(s)-1, int(share*float64(len(s))))]
}

// Spread writes the median of ratios and their range.
func Spread(list []float64) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", Median(list), slices.Min(list), slices.Max(list))
}

// Ratios divides a by b, round by round; both have the same length.
func Ratios[T ~int64 | ~float64](a, b []T) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = float64(a[i]) / float64(b[i])
	}
	return out
}

// Millis writes a time in milliseconds.
func Millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1e3) }

// Micros writes a time that is given in microseconds.
func Micros(us float64) string {
	if us < 10 {
		return fmt.Sprintf("%.2f µs", us)
	}
	return fmt.Sprintf("%.0f µs", us)
}
