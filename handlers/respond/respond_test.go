package respond_test

import (
	"net/http"
	"testing"
	"time"

	"agentsite/handlers/respond"
)

func TestRetryAfter_RoundsUpToWholeSeconds(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{0: "", -time.Second: "", time.Millisecond: "1", time.Second: "1", 1500 * time.Millisecond: "2", time.Hour: "3600"} {
		h := http.Header{}
		respond.RetryAfter(h, wait)
		if got := h.Get("Retry-After"); got != want {
			t.Errorf("%v: %q, want %q", wait, got, want)
		}
	}
}
