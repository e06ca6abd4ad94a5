package chat

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// An account writes 32 MiB of text at once and 50 messages of 64 KiB in each further second; that costs no other account
// anything, and a message that would take longer than its rate is refused with the time to wait.
func TestLimitText_BoundsOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newRateLimits()
		ada, bob := ident.Actor{Kind: ident.Person, ID: "ada"}, ident.Actor{Kind: ident.Person, ID: "bob"}
		largest := []task.Part{task.TextPart(strings.Repeat("a", 64<<10))}
		write := func(most int) (n int, err error) {
			for n < most && err == nil {
				if err = limits.limitText(t.Context(), ada, largest); err == nil {
					n++
				}
			}
			return n, err
		}
		began := time.Now()
		n, err := write(10_000)
		if f := fault.As(err); n != 128 || f.Kind != fault.RateLimited || f.RetryAfter <= 0 {
			t.Errorf("%d messages of 64 KiB, then %v", n, err)
		}
		if paused := time.Since(began); paused != refusalPause {
			t.Errorf("the refusal came after %s", paused)
		}
		if err := limits.limitText(t.Context(), bob, largest); err != nil {
			t.Errorf("another account: %v", err)
		}
		time.Sleep(time.Second - refusalPause)
		if n, _ := write(10_000); n != 16 {
			t.Errorf("%d messages in the second after the burst", n)
		}
	})
}
