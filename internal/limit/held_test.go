package limit

import (
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
)

// FuzzHeld opens and closes things of several owners in any order. The counts always equal those of a
// plain list of the open things, stay within the bounds, and are gone when all are closed.
func FuzzHeld(f *testing.F) {
	f.Add([]byte("aabbccAABBCCabc"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 128, 129, 130, 255, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		const mostOfOne, mostOfAll = 3, 7
		var h Held
		type thing struct {
			key  string
			hold *Hold
		}
		var open []thing
		for _, step := range steps {
			if step >= 128 && len(open) > 0 {
				i := int(step) % len(open)
				open[i].hold.Release()
				if step%3 == 0 {
					open[i].hold.Release() // a second call must count nothing
				}
				open = append(open[:i], open[i+1:]...)
			} else {
				key := string('a' + rune(step%5))
				want := map[string]int{}
				for _, o := range open {
					want[o.key]++
				}
				hold, full := h.Take(Share{"all", mostOfAll}, Share{key, mostOfOne})
				switch {
				case len(open) >= mostOfAll && full != "all", len(open) < mostOfAll && want[key] >= mostOfOne && full != key,
					len(open) < mostOfAll && want[key] < mostOfOne && full != "":
					t.Fatalf("with %v open, %q was answered with %q", want, key, full)
				}
				if full == "" {
					open = append(open, thing{key, hold})
				}
			}
			want := map[string]int{}
			for _, o := range open {
				want[o.key]++
				want["all"]++
			}
			if h.open != nil && !maps.Equal(h.open, want) {
				t.Fatalf("counted %v, open are %v", h.open, want)
			}
		}
		for _, o := range open {
			o.hold.Release()
		}
		if len(h.open) != 0 {
			t.Fatalf("nothing is open, and %v is counted", h.open)
		}
	})
}

func TestHeld_CountsConcurrentOnes(t *testing.T) {
	var h Held
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				key := string('a' + rune(rand.IntN(3)))
				hold, full := h.Take(Share{"all", 5}, Share{key, 2})
				if n := h.Open("all"); n > 5 {
					t.Errorf("%d are open", n)
				}
				if full == "" {
					hold.Release()
				}
			}
		})
	}
	wg.Wait()
	if len(h.open) != 0 {
		t.Errorf("%v is counted still", h.open)
	}
}
