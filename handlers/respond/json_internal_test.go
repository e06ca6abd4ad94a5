package respond

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestStamp_IsTheLayout(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	list := []time.Time{time.Date(-5, 1, 2, 3, 4, 5, 6, time.UTC), time.Date(0, 1, 2, 3, 4, 5, 6, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 2, 29, 23, 30, 0, 0, time.FixedZone("", -3600))}
	for range 2000 {
		list = append(list, time.Unix(r.Int64N(1<<38), r.Int64N(1e9)))
	}
	for _, at := range list {
		if got, want := FormatTime(at), at.UTC().Format(timeLayout); got != want {
			t.Errorf("%v is written %s, want %s", at, got, want)
		}
	}
	if got := FormatTime(time.Time{}); got != "" {
		t.Errorf("no time is written %s", got)
	}
}
