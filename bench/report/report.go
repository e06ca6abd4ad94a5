// Package report prints the table of a benchmark: the figures of the floor and of the portal, and
// whether each bar is met. It measures nothing.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Line is one row of a table. Its texts are printed unchanged; one that is "" was not measured.
type Line struct {
	What string
	// Floor is the figure with which that of the portal is compared.
	Floor, Portal string
	Ratio         string
	// P50 and P99 are latencies of both sides, the floor's first.
	P50, P99 string
	// Others is the share of the machine that other programs used.
	Others string
	Bar    string
	// Judged means that the run fails if the bar is missed. Any other bar is only printed with its
	// result.
	Judged bool
	Met    bool
	// Absolute means that the bar is a time or a speed, which is judged only on a machine as fast as
	// the one for which it was set.
	Absolute bool
	// Doubt is the reason why this row cannot be judged, such as the load of other programs; "" if it
	// can.
	Doubt string
}

// Table collects lines. It is not safe for concurrent use.
type Table struct {
	Out io.Writer
	// Slow is the reason why no absolute bar can be judged, "" if they can. It must be set before
	// Print.
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

// columns are all columns in order. Print leaves out a column that no line fills.
var columns = []column{
	{"floor", func(l Line) string { return l.Floor }},
	{"portal", func(l Line) string { return l.Portal }},
	{"ratio", func(l Line) string { return l.Ratio }},
	{"p50", func(l Line) string { return l.P50 }},
	{"p99", func(l Line) string { return l.P99 }},
	{"others", func(l Line) string { return l.Others }},
	{"bar", func(l Line) string { return l.Bar }},
}

// Add appends a line and prints it at once, because a run takes minutes.
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

// Print writes all lines as a Markdown table and returns the number of judged bars that were missed.
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

// Join returns several figures of one kind as one cell.
func Join(list ...string) string { return strings.Join(list, " / ") }

// Median returns the middle value, 0 for an empty list. It does not change the list.
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

// Percentile returns the time that the given share (0 to 1) of the times does not exceed, 0 for an
// empty list.
func Percentile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(times))
	return s[min(len(s)-1, int(share*float64(len(s))))]
}

// Spread returns the median of ratios and their range as text.
func Spread(list []float64) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", Median(list), slices.Min(list), slices.Max(list))
}

// Ratios returns a[i]/b[i] for each round. Both lists must have the same length.
func Ratios[T ~int64 | ~float64](a, b []T) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = float64(a[i]) / float64(b[i])
	}
	return out
}

// Millis returns a time in milliseconds as text.
func Millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1e3) }

// Micros returns a time, given in microseconds, as text.
func Micros(us float64) string {
	if us < 10 {
		return fmt.Sprintf("%.2f µs", us)
	}
	return fmt.Sprintf("%.0f µs", us)
}
