package report_test

import (
	"strings"
	"testing"
	"time"

	"agentsite/bench/report"
)

func TestTable_LeavesOutWhatNobodyMeasuredAndCountsMissedBars(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := report.Table{Out: &out}
	table.Add(report.Line{What: "one", Floor: "1 µs", Portal: "3 µs", Bar: "≤ 2.0×", Gated: true})
	table.Add(report.Line{What: "two", Portal: "2 µs", Bar: "≤ 9.0×", Gated: true, Met: true})
	table.Add(report.Line{What: "three", Portal: "3 µs"})
	out.Reset()
	if got := table.Print(); got != 1 {
		t.Errorf("%d bars missed, want 1", got)
	}
	for _, want := range []string{"| what ", "| floor", "| portal", "MISSED", "| met", "| –"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	for _, no := range []string{"p50", "p99", "others", "ratio"} {
		if strings.Contains(out.String(), no) {
			t.Errorf("the table has an empty column %q:\n%s", no, out.String())
		}
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
		t.Error("figures of nothing")
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
