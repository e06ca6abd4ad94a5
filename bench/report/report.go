// Package report is the table that the benchmarks end with: what was measured
// of a floor and of the portal beside it, and which bars were met. It measures
// nothing itself.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Line is one figure of a report, its parts as they are to be read; what was
// not measured is empty.
type Line struct {
	What string
	// Floor is of what the portal is compared with.
	Floor, Portal string
	Ratio         string
	// P50 and P99 are of both, the floor first.
	P50, P99 string
	// Others is the share of the machine that neither used.
	Others string
	Bar    string
	// Gated says that the bar decides, Met that it was reached.
	Gated, Met bool
}

func (l Line) verdict() string {
	switch {
	case !l.Gated:
		return ""
	case l.Met:
		return "met"
	}
	return "MISSED"
}

// Table collects lines and tells of each as it comes. One goroutine uses it.
type Table struct {
	Out   io.Writer
	lines []Line
}

type column struct {
	name string
	of   func(Line) string
}

// columns are what a line may have; those that no line has are left out.
var columns = []column{
	{"floor", func(l Line) string { return l.Floor }},
	{"portal", func(l Line) string { return l.Portal }},
	{"ratio", func(l Line) string { return l.Ratio }},
	{"p50", func(l Line) string { return l.P50 }},
	{"p99", func(l Line) string { return l.P99 }},
	{"others", func(l Line) string { return l.Others }},
	{"bar", func(l Line) string { return l.Bar }},
}

// Add adds a line.
func (t *Table) Add(l Line) {
	t.lines = append(t.lines, l)
	var b strings.Builder
	fmt.Fprintf(&b, "  %s:", l.What)
	for _, c := range columns {
		if s := c.of(l); s != "" {
			fmt.Fprintf(&b, " %s %s,", c.name, s)
		}
	}
	fmt.Fprintln(t.Out, strings.TrimSuffix(b.String(), ","), l.verdict())
}

// Print writes the table and returns how many bars were missed.
func (t *Table) Print() (missed int) {
	w := tabwriter.NewWriter(t.Out, 0, 0, 1, ' ', tabwriter.Debug)
	show := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return !slices.ContainsFunc(t.lines, func(l Line) bool { return c.of(l) != "" })
	})
	fmt.Fprint(w, "\n| what\t ")
	for _, c := range show {
		fmt.Fprintf(w, "%s\t ", c.name)
	}
	fmt.Fprintln(w, "\t")
	for _, l := range t.lines {
		fmt.Fprintf(w, "| %s\t ", l.What)
		for _, c := range show {
			fmt.Fprintf(w, "%s\t ", Dash(c.of(l)))
		}
		fmt.Fprintf(w, "%s\t\n", l.verdict())
		if l.Gated && !l.Met {
			missed++
		}
	}
	w.Flush()
	return missed
}

// Dash writes a dash for nothing.
func Dash(s string) string { return cmp.Or(s, "–") }

// Join writes several figures of one kind.
func Join(list ...string) string { return strings.Join(list, " / ") }

// Median is the one in the middle, 0 of none.
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

// Percentile is the time that a share of all were within, 0 of none.
func Percentile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(times))
	return s[min(len(s)-1, int(share*float64(len(s))))]
}

// Spread writes the median of ratios with the range of its rounds.
func Spread(list []float64) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", Median(list), slices.Min(list), slices.Max(list))
}

// Ratios are those of a to b, round by round; both have as many.
func Ratios[T ~int64 | ~float64](a, b []T) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = float64(a[i]) / float64(b[i])
	}
	return out
}

// Millis writes a time in milliseconds.
func Millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1e3) }
