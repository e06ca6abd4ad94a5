package order_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"agentsite/internal/order"
)

func TestBy_IsWhatSlicesDoes(t *testing.T) {
	type pair struct{ key, at int }
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 60 {
		a := make([]pair, n)
		for i := range a {
			a[i] = pair{r.IntN(10), i}
		}
		b := slices.Clone(a)
		by := func(x, y pair) int { return cmp.Compare(x.key, y.key) }
		order.By(a, by)
		slices.SortStableFunc(b, by)
		if !slices.Equal(a, b) {
			t.Fatalf("%v, want %v", a, b)
		}
	}
}
