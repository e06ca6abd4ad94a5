package meter

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ContentType is the media type of the output of Text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text collects the output for a scraper. Its zero value is empty.
type Text struct{ b bytes.Buffer }

// Bytes returns the collected output.
func (t *Text) Bytes() []byte { return t.b.Bytes() }

// Counter declares that the following samples of this name only grow.
func (t *Text) Counter(name, help string) { t.writeHead(name, help, "counter") }

// Gauge declares that the following samples of this name go up and down.
func (t *Text) Gauge(name, help string) { t.writeHead(name, help, "gauge") }

func (t *Text) writeHead(name, help, kind string) {
	t.b.WriteString("# HELP " + name + " " + escaped.Replace(help) + "\n# TYPE " + name + " " + kind + "\n")
}

var escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// Value writes one number. labels are names and values in turn; values may be
// a stranger's.
func (t *Text) Value(name string, v float64, labels ...string) {
	t.b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		t.b.WriteByte(sep)
		t.b.WriteString(labels[i] + `="` + escaped.Replace(strings.ToValidUTF8(labels[i+1], "�")) + `"`)
	}
	if len(labels) > 1 {
		t.b.WriteByte('}')
	}
	t.b.WriteByte(' ')
	t.b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	t.b.WriteByte('\n')
}

// One writes a name with its only number.
func (t *Text) One(kind func(name, help string), name, help string, v float64) {
	kind(name, help)
	t.Value(name, v)
}

// Each writes a name with a number for each value of a label, in order.
func (t *Text) Each(kind func(name, help string), name, help, label string, counts map[string]int64) {
	kind(name, help)
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Value(name, float64(counts[k]), label, k)
	}
}
