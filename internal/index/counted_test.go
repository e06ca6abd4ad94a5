package index

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"agentsite/internal/hub"
)

// TestSearch_FacetsAreThoseOfTheQueryAndOfNow asks for each query twice, in
// turns with others and with changes, and compares with an index that is asked
// for the first time.
func TestSearch_FacetsAreThoseOfTheQueryAndOfNow(t *testing.T) {
	c := newCorpus()
	x := New()
	long := strings.Repeat("a", 2*maxCountedKey)
	queries := []hub.Query{
		{}, {Text: c.words[0]}, {Text: c.words[0], Sort: hub.SortName}, {Text: c.words[1]}, {Kinds: []string{"a2a"}}, {Tags: []string{"a2a"}},
		{Kinds: []string{"a2a", "openai"}}, {Kinds: []string{"a2aopenai"}}, {Text: c.words[0], Live: []string{"alive"}},
		{Text: c.words[0] + " " + long}, {Text: c.words[1] + " " + long}, {Portals: []string{"local"}},
	}
	for i := range 60 {
		if i%5 == 4 {
			x.Remove(c.agent(i - 2).ID)
		} else {
			x.Put(c.agent(i))
		}
		fresh := New()
		for k := range i + 1 {
			if (k+3)%5 != 0 || k+2 > i {
				if k%5 != 4 {
					fresh.Put(c.agent(k))
				}
			}
		}
		for round := range 2 {
			for _, q := range queries {
				got, err := x.Search(q)
				if err != nil {
					t.Fatal(err)
				}
				fresh.counted.lists = nil
				want, _ := fresh.Search(q)
				if got.Total != want.Total || !reflect.DeepEqual(got.Facets, want.Facets) {
					t.Fatalf("step %d, round %d, %.80q:\n got %d %v\nwant %d %v", i, round, fmt.Sprint(q), got.Total, got.Facets, want.Total, want.Facets)
				}
				for _, list := range got.Facets { // whoever asked may do what he likes with it
					for k := range list {
						list[k] = hub.FacetCount{Value: "nonsense"}
					}
				}
			}
		}
		if n := len(x.counted.lists); n == 0 || n > len(queries) {
			t.Fatalf("%d queries are kept", n)
		}
	}
	for i := range 2 * maxCounted {
		if _, err := x.Search(hub.Query{Text: fmt.Sprint("word", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(x.counted.lists); n > maxCounted {
		t.Errorf("%d queries are kept, at most %d", n, maxCounted)
	}
}
