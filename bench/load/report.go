package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// line is one figure of the report.
type line struct {
	what, floor, portal, ratio, p50, p99, others, bar string
	gated, met                                        bool
}

type report struct {
	out   io.Writer
	lines []line
}

func (r *report) add(l line) {
	r.lines = append(r.lines, l)
	fmt.Fprintf(r.out, "  %s: floor %s, portal %s, ratio %s, p50 %s, p99 %s, others %s %s %s\n", l.what, dash(l.floor), dash(l.portal), dash(l.ratio), dash(l.p50), dash(l.p99), dash(l.others), l.bar, l.verdict())
}

func dash(s string) string { return cmp.Or(s, "–") }

func (l line) verdict() string {
	switch {
	case !l.gated:
		return ""
	case l.met:
		return "met"
	}
	return "MISSED"
}

// print writes the table and returns how many bars were missed.
func (r *report) print() (missed int) {
	w := tabwriter.NewWriter(r.out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "\n| what\t floor\t portal\t ratio\t p50\t p99\t others\t bar\t \t")
	for _, l := range r.lines {
		fmt.Fprintf(w, "| %s\t %s\t %s\t %s\t %s\t %s\t %s\t %s\t %s\t\n", l.what, dash(l.floor), dash(l.portal), dash(l.ratio), dash(l.p50), dash(l.p99), dash(l.others), dash(l.bar), l.verdict())
		if l.gated && !l.met {
			missed++
		}
	}
	w.Flush()
	return missed
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// percentile is the time that a share of all were within.
func percentile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(times))
	return s[min(len(s)-1, int(share*float64(len(s))))]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1e3) }

func micro(v float64) string { return fmt.Sprintf("%.0f µs", v) }

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// spread writes a ratio with the range of its rounds.
func spread(list []float64) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(list), slices.Min(list), slices.Max(list))
}

func join(list []string) string { return strings.Join(list, " / ") }
