package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// row is one figure of all networks.
type row struct {
	what string
	// of is the figure as it is shown, value what ratios and bars are of.
	of    func(Result) string
	value func(Result) (float64, bool)
	// met says whether ours is good enough; bar what is asked for. Without one
	// it is for information.
	bar string
	met func(Result) bool
}

func num(format string, get func(Result) float64) (func(Result) string, func(Result) (float64, bool)) {
	return func(r Result) string { return fmt.Sprintf(format, get(r)) }, func(r Result) (float64, bool) { return get(r), true }
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func each(r Result, bytes int64) float64 { return float64(bytes) / float64(r.Nodes) / 1024 }

// warm and closed are what a node of the DHT has, heap and stacks.
func warm(r Result) float64 {
	return each(r, r.Warm.Heap+r.Warm.Stacks-r.Base.Heap-r.Base.Stacks)
}

func closed(r Result) float64 {
	return each(r, r.Closed.Heap+r.Closed.Stacks-r.Base.Heap-r.Base.Stacks)
}

func series(s Series) string {
	cut := ""
	if s.Cut {
		cut = ", cut short"
	}
	return fmt.Sprintf("%.3f of %d, %.1f RPC, %.1f / %.1f ms%s", s.success(), s.N, s.RPCs, millis(s.P50), millis(s.P99), cut)
}

func of(what string, s func(Result) Series, value func(Series) float64, bar string, met func(Series) bool) row {
	r := row{what: what, bar: bar,
		of:    func(r Result) string { return series(s(r)) },
		value: func(r Result) (float64, bool) { return value(s(r)), s(r).N > 0 }}
	if met != nil {
		r.met = func(r Result) bool { return met(s(r)) }
	}
	return r
}

func figure(what, format string, get func(Result) float64, bar string, met func(float64) bool) row {
	r := row{what: what, bar: bar}
	r.of, r.value = num(format, get)
	if met != nil {
		r.met = func(r Result) bool { return met(get(r)) }
	}
	return r
}

func most(limit float64) func(float64) bool  { return func(v float64) bool { return v <= limit } }
func least(limit float64) func(float64) bool { return func(v float64) bool { return v >= limit } }

func all(s Series) bool { return s.N > 0 && s.Found == s.N && !s.Cut }

var (
	rpcs = func(s Series) float64 { return s.RPCs }
	p50  = func(s Series) float64 { return millis(s.P50) }
	p99  = func(s Series) float64 { return millis(s.P99) }
)

// rows are what is printed.
func rows() []row {
	return []row{
		figure("contacts in a table", "%.0f", func(r Result) float64 { return r.Table }, "", nil),
		figure("bytes of a value", "%.0f", func(r Result) float64 { return float64(r.Value) }, "", nil),
		of("put: stored, RPC*, p50 / p99", func(r Result) Series { return r.Put }, rpcs, "all, ≤ 32 RPC", func(s Series) bool { return all(s) && s.RPCs <= 32 }),
		of("first value: found, RPC*, p50 / p99", func(r Result) Series { return r.First }, rpcs, "all, ≤ 5 RPC", func(s Series) bool { return all(s) && s.RPCs <= 5 }),
		of("the same, p50*", func(r Result) Series { return r.First }, p50, "", nil),
		of("full lookup: found, RPC*, p50 / p99", func(r Result) Series { return r.Full }, rpcs, "all", all),
		figure("many clients: get/s", "%.0f", func(r Result) float64 { return r.GetRush.PerSecond }, "", nil),
		figure("… CPU-ms per get", "%.2f", func(r Result) float64 { return millis(r.GetRush.CPU) }, "≤ 1.2", most(1.2)),
		figure("… that failed", "%.0f", func(r Result) float64 { return float64(r.GetRush.Failed) }, "0", most(0)),
		figure("many clients: put/s", "%.0f", func(r Result) float64 { return r.PutRush.PerSecond }, "≥ 150", least(150)),
		figure("… CPU-ms per put", "%.2f", func(r Result) float64 { return millis(r.PutRush.CPU) }, "", nil),
		figure("… RPC per put", "%.1f", func(r Result) float64 { return r.PutRush.RPCs }, "≤ 32", most(32)),
		figure("… that failed", "%.0f", func(r Result) float64 { return float64(r.PutRush.Failed) }, "0", most(0)),
		figure("connection ends per node", "%.0f", func(r Result) float64 { return float64(r.WarmEnds) / float64(r.Nodes) }, "", nil),
		figure("goroutines per node", "%.0f", func(r Result) float64 { return float64(r.Warm.Goroutines) / float64(r.Nodes) }, "", nil),
		figure("live KiB per node, connections warm", "%.0f", warm, "≤ 3072", most(3072)),
		{what: "… connections idle and closed", of: func(r Result) string {
			if !r.HasClosed {
				return "–"
			}
			return fmt.Sprintf("%.0f", closed(r))
		}, value: func(r Result) (float64, bool) { return closed(r), r.HasClosed }, bar: "≤ 300", met: func(r Result) bool { return closed(r) <= 300 }},
		figure("… RSS, warm, all included", "%.0f", func(r Result) float64 { return each(r, r.Warm.RSS) }, "", nil),
		figure("idle: CPU-ms/s per node", "%.3f", func(r Result) float64 { return r.IdleCPU }, "≤ 1", most(1)),
		figure("idle: B/s per node, in and out", "%.0f", func(r Result) float64 { return r.IdleBytes }, "≤ 2000", most(2000)),
		of("30 % killed, first: found, RPC, p50 / p99*", func(r Result) Series { return r.KillFirst }, p99, "all", all),
		of("30 % killed, full: found, RPC, p50* / p99", func(r Result) Series { return r.KillFull }, p50, "all", all),
		of("30 % mute, first: found, RPC, p50 / p99*", func(r Result) Series { return r.MuteFirst }, p99, "all, p99 ≤ 1 s", func(s Series) bool { return all(s) && s.P99 <= time.Second }),
		of("30 % mute, put: stored, RPC, p50 / p99*", func(r Result) Series { return r.MutePut }, p99, "all, p99 ≤ 3 s", func(s Series) bool { return all(s) && s.P99 <= 3*time.Second }),
		of("30 % mute, full: found, RPC, p50 / p99*", func(r Result) Series { return r.MuteFull }, p99, "all, p99 ≤ 3 s", func(s Series) bool { return all(s) && s.P99 <= 3*time.Second }),
	}
}

// print writes the table and returns how many of our bars are missed. Ratios are
// of the figure with the star.
func print(out io.Writer, names []string, results map[string]Result) (missed int) {
	mine, has := results["ours"]
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprint(w, "\n| what\t ")
	for _, n := range names {
		fmt.Fprintf(w, "%s\t ", n)
	}
	for _, n := range names {
		if has && n != "ours" {
			fmt.Fprintf(w, "ours / %s\t ", n)
		}
	}
	fmt.Fprintln(w, "bar\t \t")
	for _, r := range rows() {
		fmt.Fprintf(w, "| %s\t ", r.what)
		for _, n := range names {
			fmt.Fprintf(w, "%s\t ", r.of(results[n]))
		}
		for _, n := range names {
			if !has || n == "ours" {
				continue
			}
			ratio := "–"
			a, ok := r.value(mine)
			if b, there := r.value(results[n]); ok && there && b != 0 {
				ratio = fmt.Sprintf("%.2f", a/b)
			}
			fmt.Fprintf(w, "%s\t ", ratio)
		}
		verdict := ""
		if has && r.met != nil {
			if verdict = "met"; !r.met(mine) {
				verdict = "MISSED"
				missed++
			}
		}
		fmt.Fprintf(w, "%s\t %s\t\n", r.bar, verdict)
	}
	w.Flush()
	return missed
}
