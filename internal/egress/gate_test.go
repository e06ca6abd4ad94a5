package egress

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func mustEnter(t *testing.T, g *gate, key string) *ticket {
	t.Helper()
	k, err := g.enterHost(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestGate_LimitsInFlightAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2)
		a, b := mustEnter(t, g, "h:80"), mustEnter(t, g, "h:80")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.enterHost(ctx, "h:80"); !errors.Is(err, context.DeadlineExceeded) || CodeOf(err) != Canceled {
			t.Errorf("third: %v", err)
		}
		got := make(chan *ticket)
		go func() {
			k, _ := g.enterHost(t.Context(), "h:80")
			got <- k
		}()
		synctest.Wait()
		mustEnter(t, g, "other:80").freeSlot()
		a.freeSlot()
		c := <-got
		b.freeSlot()
		c.freeSlot()
		if len(g.hosts) != 0 {
			t.Errorf("%d hosts stay", len(g.hosts))
		}
	})
}

func TestGate_RestsAfterFailuresAndTriesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(8)
		fail := func() {
			k := mustEnter(t, g, "h:80")
			k.markFailed("connection refused")
			k.freeSlot()
		}
		for range breakAfter {
			fail()
		}
		if _, err := g.enterHost(t.Context(), "h:80"); CodeOf(err) != Resting {
			t.Fatalf("open: %v", err)
		}
		mustEnter(t, g, "h:81").freeSlot()
		time.Sleep(restFor)
		probe := mustEnter(t, g, "h:80")
		if _, err := g.enterHost(t.Context(), "h:80"); CodeOf(err) != Resting {
			t.Errorf("second during the probe: %v", err)
		}
		probe.markFailed("timed out")
		probe.freeSlot()
		_, err := g.enterHost(t.Context(), "h:80")
		if CodeOf(err) != Resting || !strings.HasPrefix(Reason(err), "timed out; after 6 failed connections") {
			t.Errorf("after a failed probe: %v", err)
		}
		time.Sleep(restFor)
		probe = mustEnter(t, g, "h:80")
		probe.markConnected()
		mustEnter(t, g, "h:80").freeSlot()
		probe.freeSlot()
		if len(g.hosts) != 0 {
			t.Errorf("%d hosts stay", len(g.hosts))
		}
	})
}

func TestGate_RemembersBoundedly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		for i := range maxHosts {
			k := mustEnter(t, g, fmt.Sprintf("h%d:80", i))
			k.markFailed("connection refused")
			k.freeSlot()
		}
		mustEnter(t, g, "one more:80").freeSlot()
		if len(g.hosts) > maxHosts {
			t.Errorf("%d hosts", len(g.hosts))
		}
	})
}

func TestDo_BreakerCountsConnectionsNotStatuses(t *testing.T) {
	ln := listen(t, "127.0.0.1:0", nil)
	dead := "http://127.0.0.1:" + ln.port()
	ln.Close()
	c := client(t, Config{AllowCIDR: loopback(t)})
	for i := range breakAfter + 1 {
		_, err := get(t, c, dead)
		want := Connect
		if i == breakAfter {
			want = Resting
		}
		if CodeOf(err) != want || !strings.HasPrefix(Reason(err), "connection refused") {
			t.Errorf("try %d: %v", i, err)
		}
	}
	for range 2 * breakAfter {
		if _, err := get(t, c, "http://10.0.0.1/"); CodeOf(err) != Private {
			t.Errorf("private: %v", err)
		}
	}
}
