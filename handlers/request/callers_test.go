package request

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/ident"
)

func TestCallers_GuestsAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCallers(nil, nil, nil)
		c.Remember(Caller{Actor: ident.Actor{Addr: "192.0.2.1"}, secret: "s1"}, "room")
		c.Remember(Caller{Actor: ident.Actor{Addr: "192.0.2.1", ID: "somebody"}}, "theirs") // no guest
		for range 3 {
			time.Sleep(keepFor - time.Minute)
			if got := c.secret("192.0.2.1", "room"); got != "s1" {
				t.Fatalf("who comes back is %q", got)
			}
		}
		if got := c.secret("192.0.2.2", "room"); got != "" {
			t.Errorf("who comes from elsewhere is %q", got)
		}
		if got := c.secret("192.0.2.1", "theirs"); got != "" {
			t.Errorf("a conversation of an account is kept: %q", got)
		}
		time.Sleep(keepFor + time.Minute)
		if got := c.secret("192.0.2.1", "room"); got != "" {
			t.Errorf("kept for ever: %q", got)
		}
	})
}

func TestCallers_KeepsNoMoreThanItsBound(t *testing.T) {
	t.Parallel()
	c := NewCallers(nil, nil, nil)
	for i := range maxKept + 100 {
		c.Remember(Caller{Actor: ident.Actor{Addr: "a"}, secret: "s"}, fmt.Sprint(i))
	}
	if len(c.kept) != maxKept || c.order.Len() != maxKept || c.secret("a", "99") != "" || c.secret("a", "100") != "s" {
		t.Errorf("%d kept", len(c.kept))
	}
}
