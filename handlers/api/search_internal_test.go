package api

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentsite/handlers/address"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// The shapes of the answer, as package json would write them.
type (
	pageShape struct {
		Facets      map[string][]hub.FacetCount `json:"facets"`
		NextCursor  string                      `json:"next_cursor"`
		Portals     federation.Coverage         `json:"portals"`
		Results     []resultShape               `json:"results"`
		Suggestions []string                    `json:"suggestions"`
		Total       int                         `json:"total"`
	}
	resultShape struct {
		Agent    agentJSON    `json:"agent"`
		Score    float64      `json:"score"`
		Matched  []string     `json:"matched"`
		Why      []whyShape   `json:"why"`
		Liveness livenessJSON `json:"liveness"`
		Verified bool         `json:"verified"`
		Source   sourceJSON   `json:"source"`
	}
	whyShape struct {
		Word  string `json:"word"`
		Found string `json:"found"`
		How   string `json:"how"`
		Field string `json:"field"`
	}
)

// shape is what a page is answered as.
func (d *agentAPI) shape(page *hub.Page) pageShape {
	s := pageShape{Facets: page.Facets, NextCursor: page.NextCursor, Results: []resultShape{}, Suggestions: orEmpty(page.Suggestions), Total: page.Total,
		Portals: page.Coverage}
	s.Portals.Silent = orEmpty(s.Portals.Silent)
	if s.Facets == nil {
		s.Facets = map[string][]hub.FacetCount{}
	}
	for _, r := range page.Results {
		a := d.agentJSON(ident.Actor{}, r.Agent)
		why := []whyShape{}
		for _, m := range r.Why {
			why = append(why, whyShape(m))
		}
		s.Results = append(s.Results, resultShape{a, r.Score, orEmpty(r.Matched), why, a.Liveness, a.Verified, d.source(&r.Agent)})
	}
	return s
}

// byPackageJSON is v by package json, as writeJSON writes it.
func byPackageJSON(t *testing.T, v any) string {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// fill sets everything in v to something, or to nothing.
func fill(r *rand.Rand, v reflect.Value) {
	if r.IntN(5) == 0 {
		return
	}
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Unix(r.Int64N(1<<33), r.Int64N(1e9))
		return
	case *json.RawMessage:
		*at = json.RawMessage([]string{`{"a" : [1, "<b>", "\u2028"]}`, `{}`, " null "}[r.IntN(3)])
		return
	case *float64:
		*at = []float64{r.Float64(), 100 * r.NormFloat64(), math.Ldexp(r.Float64(), r.IntN(200)-100), float64(r.Float32()), float64(r.IntN(9)), math.Copysign(0, -1)}[r.IntN(6)]
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(anyText(r))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1<<40) - 1<<39)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(4) {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(r, e)
			v.SetMapIndex(reflect.ValueOf(anyText(r)), e)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	default:
		panic("cannot fill " + v.Type().String())
	}
}

// anyText is plain for the most part, but at any place may have what needs an
// escape.
func anyText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(30) {
		switch r.IntN(24) {
		case 0:
			b.WriteByte(byte(r.IntN(256))) // perhaps half a letter
		case 1:
			b.WriteByte(`"\/<>&'`[r.IntN(7)])
		case 2:
			b.WriteByte(byte(r.IntN(33)))
		case 3:
			b.WriteRune([]rune{'\u2027', '\u2028', '\u2029', '\u202a', '\ufffd', '\u007f', '\u0080', 'ü', '語', '😀'}[r.IntN(10)])
		default:
			b.WriteByte(byte('a' + r.IntN(26)))
		}
	}
	return b.String()
}

// elsewhere is a network that says of each agent what the agent says itself.
type elsewhere struct{ hub.Network }

func (elsewhere) Source(a hub.Agent) hub.Source {
	return hub.Source{Portal: a.Portal, URL: a.Endpoint, Verified: len(a.Portal)%2 == 0, ID: a.ID, Record: a.Name, Also: a.Languages}
}

func TestSearchJSON_IsWhatPackageJSONWrites(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		d := &agentAPI{hub: hub.New(hub.Ports{Network: elsewhere{}}, hub.Config{}), portal: address.Portal{Host: anyText(r), URL: anyText(r)}}
		var page hub.Page
		fill(r, reflect.ValueOf(&page).Elem())
		got, err := d.appendPage([]byte("before"), &page)
		if err != nil {
			t.Fatal(err)
		}
		if want := "before" + byPackageJSON(t, d.shape(&page)); string(got) != want {
			t.Fatalf("a page is written\n%s\nwant\n%s", got, want)
		}
	}
}

// An agent in an answer has more than a guest sees, for its owner.
func TestAgentJSON_IsWhatPackageJSONWrites(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		var a agentJSON
		fill(r, reflect.ValueOf(&a).Elem())
		got, err := a.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSuffix(byPackageJSON(t, a), "\n"); string(got) != want {
			t.Fatalf("an agent is written\n%s\nwant\n%s", got, want)
		}
	}
}

func TestAppendText_IsWhatPackageJSONWrites(t *testing.T) {
	for c := range 256 {
		for at := range 18 {
			b := bytes.Repeat([]byte("x"), 17)
			if at < len(b) {
				b[at] = byte(c)
			}
			if got, want := string(appendText(nil, string(b)))+"\n", byPackageJSON(t, string(b)); got != want {
				t.Errorf("%q is written %s, want %s", b, got, want)
			}
		}
	}
}
