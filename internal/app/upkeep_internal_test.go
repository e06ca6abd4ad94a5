package app

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/clock"
)

func TestWatchClock_LogsAStepBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var offset atomic.Int64
		watch := clock.NewWatch(func() time.Time { return clock.Now().Add(time.Duration(offset.Load())) })
		var out bytes.Buffer
		done := make(chan bool)
		go func() { watchClock(ctx, watch, slog.New(slog.NewTextHandler(&out, nil))); close(done) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if out.Len() > 0 {
			t.Errorf("a clock that goes right is logged: %s", out.String())
		}
		offset.Store(int64(-90 * time.Second))
		time.Sleep(10 * time.Minute)
		stop()
		<-done
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "the clock was set back") ||
			!strings.Contains(got, "by=1m30s") {
			t.Errorf("logged %q", got)
		}
	})
}
