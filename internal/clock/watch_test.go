package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
)

func TestWatch_ReportsEachStepBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offset time.Duration
		w := clock.NewWatch(func() time.Time { return clock.Now().Add(offset) })
		for _, c := range []struct {
			name   string
			change time.Duration
			want   time.Duration
		}{
			{"a clock that goes right", 0, 0},
			{"an hour back", -time.Hour, time.Hour},
			{"no further change", 0, 0},
			{"a day ahead", 24 * time.Hour, 0},
			{"a small correction", -200 * time.Millisecond, 0},
			{"back by less than the time since the last check", -5 * time.Second, 5 * time.Second},
		} {
			offset += c.change
			time.Sleep(10 * time.Second)
			got := w.Check()
			if got.By != c.want || (c.want > 0) != (got.At.Equal(clock.Now().Add(offset))) {
				t.Errorf("%s: %+v, want %v", c.name, got, c.want)
			}
			if c.want > 0 && w.Last() != got {
				t.Errorf("%s: the last step is %+v", c.name, w.Last())
			}
		}
		if w.Last().By != 5*time.Second {
			t.Errorf("the last step is %+v", w.Last())
		}
	})
}
