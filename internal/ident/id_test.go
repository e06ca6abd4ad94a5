package ident_test

import (
	"math/big"
	"strings"
	"sync"
	"testing"

	"github.com/oklog/ulid/v2"

	"agentsite/internal/ident"
)

func TestNewID_UniqueAndValid(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				id := ident.NewID()
				mu.Lock()
				if seen[id] || !ident.ValidID(id) || len(id) != 26 {
					t.Errorf("%q", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestValidID(t *testing.T) {
	t.Parallel()
	good := ident.NewID()
	for _, s := range []string{"", good[:25], good + "0", good[:25] + "U", good[:25] + "\x00", good[:24] + "é", "8" + strings.Repeat("Z", 25), " " + good, strings.Repeat("/", 26)} {
		if ident.ValidID(s) {
			t.Errorf("%q is an id", s)
		}
	}
}

func TestNewSecret_CarriesPrefixAndEntropy(t *testing.T) {
	t.Parallel()
	a, b := ident.NewSecret(ident.TokenPrefix), ident.NewSecret(ident.TokenPrefix)
	if a == b || !strings.HasPrefix(a, "ags_") || len(a) != 4+43 {
		t.Error(a, b)
	}
	if h := ident.HashSecret(a); len(h) != 64 || h == ident.HashSecret(b) || strings.Contains(h, a[4:12]) || h != ident.HashSecret(a) {
		t.Error(h)
	}
}

func TestEqualSecret_EmptyEqualsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{{"x", "x", true}, {"x", "y", false}, {"x", "xx", false}, {"", "", false}, {"", "x", false}, {"x", "", false}} {
		if ident.EqualSecret(c.a, c.b) != c.want {
			t.Errorf("%q %q", c.a, c.b)
		}
	}
}

func TestBearerToken(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"Bearer x": "x", "bearer  x ": "x", "BEARER x": "x", "": "", "x": "", "Basic x": "", "Bearer": "", "Bearer ": "", "Bearerx y": ""} {
		if got := ident.BearerToken(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestActor_NarrowedToItsScopes(t *testing.T) {
	t.Parallel()
	whole := ident.Actor{Kind: ident.Person, ID: "x"}
	narrow := ident.Actor{Kind: ident.Person, ID: "x", Narrowed: true, Scopes: []ident.Scope{ident.ChatRead}}
	none := ident.Actor{Kind: ident.Operator, Narrowed: true}
	for _, s := range ident.Scopes() {
		if !whole.May(s) || narrow.May(s) != (s == ident.ChatRead) || none.May(s) {
			t.Errorf("%s is judged wrong", s)
		}
	}
	var zero ident.Actor
	if zero.IsPerson() || zero.IsOperator() || !none.IsPerson() || whole.IsOperator() {
		t.Error("kinds are judged wrong")
	}
}

func TestNewID_DoesNotFollowFromTheOneBefore(t *testing.T) {
	t.Parallel()
	far, pairs := 0, 0
	for last := ulid.MustParse(ident.NewID()); pairs < 1000; {
		id := ulid.MustParse(ident.NewID())
		if id.Time() == last.Time() {
			pairs++
			gap := new(big.Int).Sub(new(big.Int).SetBytes(id.Entropy()), new(big.Int).SetBytes(last.Entropy()))
			if gap.BitLen() > 40 {
				far++
			}
		}
		last = id
	}
	if far < pairs*9/10 {
		t.Errorf("%d of %d ids of the same millisecond are within reach of their neighbour", pairs-far, pairs)
	}
}

func TestScope_NamesItsBox(t *testing.T) {
	t.Parallel()
	labels := map[string]bool{}
	for _, s := range ident.Scopes() {
		if s.Label() == "" || labels[s.Label()] {
			t.Errorf("the label of %s is %q", s, s.Label())
		}
		labels[s.Label()] = true
		if m := s.DescribeMissing(); !strings.Contains(m, `"`+string(s)+`"`) || !strings.Contains(m, "“"+s.Label()+"” ticked") {
			t.Errorf("%s: %s", s, m)
		}
	}
}
