package meter_test

import (
	"strconv"
	"strings"
	"testing"

	"agentsite/internal/meter"
)

func TestKinds_AreBounded(t *testing.T) {
	t.Parallel()
	var k meter.Kinds
	for i := range 1000 {
		k.Add("kind"+strconv.Itoa(i), 1)
	}
	k.Add(strings.Repeat("x", 1000), 5)
	k.Add("kind0", 1)
	all := k.All()
	if len(all) > 65 || all["kind0"] != 2 || all[meter.Other] != 1000-64+5 {
		t.Errorf("%d kinds, %d others, %d of the first", len(all), all[meter.Other], all["kind0"])
	}
}

func TestText_EscapesWhatStrangersChose(t *testing.T) {
	t.Parallel()
	var x meter.Text
	x.One(x.Gauge, "a_gauge", "One\nline.", 1.5)
	x.Each(x.Counter, "a_total", "More.", "by", map[string]int64{"b": 2, "a\"\\\n\xff": 1})
	want := "# HELP a_gauge One\\nline.\n# TYPE a_gauge gauge\na_gauge 1.5\n# HELP a_total More.\n# TYPE a_total counter\na_total{by=\"a\\\"\\\\\\n�\"} 1\na_total{by=\"b\"} 2\n"
	if got := string(x.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
