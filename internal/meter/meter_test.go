package meter_test

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"agentsite/internal/meter"
)

func TestNewCounters_StartAtZeroAndEscape(t *testing.T) {
	t.Parallel()
	v := meter.NewCounters("a_total", "One\nline.", "by", "zero")
	v.WithLabelValues("a\"\\\n").Inc()
	registry := prometheus.NewRegistry()
	registry.MustRegister(v)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(len(families), err)
	}
	var b bytes.Buffer
	if _, err := expfmt.MetricFamilyToText(&b, families[0]); err != nil {
		t.Fatal(err)
	}
	want := "# HELP a_total One\\nline.\n# TYPE a_total counter\na_total{by=\"a\\\"\\\\\\n\"} 1\na_total{by=\"zero\"} 0\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
