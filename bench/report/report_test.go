package report_test

import (
	"strings"
	"testing"
	"time"

	"agentsite/bench/report"
)

func TestTable_PrintsMarkdownAndCountsMissedBars(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := report.Table{Out: &out, Slow: "machine slower"}
	table.Add(report.Line{What: "one", Floor: "1 µs", Portal: "3 µs", Bar: "≤ 2.0×", Judged: true})
	table.Add(report.Line{What: "two", Portal: "2 µs", Bar: "≤ 9.0×", Judged: true, Met: true})
	table.Add(report.Line{What: "three", Portal: "3 µs"})
	table.Add(report.Line{What: "four", Portal: "4 ms", Bar: "≤ 3 ms", Judged: true, Absolute: true})
	table.Add(report.Line{What: "five", Portal: "5 ms", Bar: "≤ 3 ms"})
	table.Add(report.Line{What: "six", Portal: "6 µs", Bar: "≤ 2.0×", Judged: true, Doubt: "others used 50 %"})
	out.Reset()
	if got := table.Print(); got != 1 {
		t.Errorf("%d bars missed, want 1", got)
	}
	want := `
| row | floor | portal | bar | result |
|---|---|---|---|---|
| one | 1 µs | 3 µs | ≤ 2.0× | MISSED |
| two | – | 2 µs | ≤ 9.0× | met |
| three | – | 3 µs | – |  |
| four | – | 4 ms | ≤ 3 ms | missed, not judged: machine slower |
| five | – | 5 ms | ≤ 3 ms | missed, not judged here |
| six | – | 6 µs | ≤ 2.0× | missed, not judged: others used 50 % |

2 bars could not be judged in this run
`
	if out.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", out.String(), want)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	if got := report.Median([]float64{9, 1, 3, 2}); got != 2.5 {
		t.Errorf("median of four %v", got)
	}
	if got := report.Median([]time.Duration{9, 1, 3}); got != 3 {
		t.Errorf("median of three %v", got)
	}
	if report.Median([]float64(nil)) != 0 || report.Percentile(nil, 0.5) != 0 || report.Spread(nil) != "" {
		t.Error("figures of an empty list")
	}
	times := make([]time.Duration, 100)
	for i := range times {
		times[i] = time.Duration(100 - i)
	}
	if got := report.Percentile(times, 0.99); got != 100 {
		t.Errorf("p99 %v", got)
	}
	if got := report.Spread(report.Ratios([]float64{2, 9, 4}, []float64{1, 3, 2})); got != "2.00 (2.00–3.00)" {
		t.Errorf("spread %q", got)
	}
}
