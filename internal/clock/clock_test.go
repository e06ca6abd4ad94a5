package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
)

func TestNow_IsUTCInMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(1500 * time.Microsecond)
		want := time.Date(2000, 1, 1, 0, 0, 0, int(time.Millisecond), time.UTC)
		if got := clock.Now(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestMilli_RoundTrips(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{{}, time.UnixMilli(1), time.UnixMilli(-5), time.Date(2026, 11, 20, 1, 2, 3, 4e6, time.FixedZone("x", 3600))} {
		if got := clock.FromMilli(clock.Milli(at)); !got.Equal(at) || got.IsZero() != at.IsZero() {
			t.Errorf("%v came back as %v", at, got)
		}
	}
	if clock.Milli(time.Time{}) != 0 || !clock.FromMilli(0).IsZero() {
		t.Error("the zero time is not 0")
	}
}

func TestSleep_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if !clock.Sleep(ctx, time.Second) || time.Since(began) != time.Second {
			t.Error("it did not wait")
		}
		if clock.Sleep(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Error("it waited on")
		}
	})
}
