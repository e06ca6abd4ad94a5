package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/federation"
	"agentsite/internal/testing/apptest"
)

// gossips asks an operator's portal how it stands in the pool until that is as
// wanted.
func gossips(t *testing.T, by *apptest.Client, good func(federation.GossipStanding) bool) (g federation.GossipStanding) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pace := time.NewTicker(200 * time.Millisecond)
	defer pace.Stop()
	for {
		g = federation.GossipStanding{}
		by.Get(http.MethodGet, "/api/v1/peers/gossip", nil, http.StatusOK, &g)
		if good(g) {
			return g
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			t.Fatalf("%+v", g)
		}
	}
}

// news gives a portal something to tell that all are there for: what was told
// first may have been told before some had met. It is told within a minute.
func news(by *apptest.Client) {
	by.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "news", "description": "Something new.", "kind": "openai", "endpoint": "http://127.0.0.1:8999/v1",
		"visibility": "public", "config": map[string]any{"model": "m"}}, http.StatusCreated)
}

// TestGossip_MeetsThoseThatGossip lets portals that were told of the first only
// gossip with each other; one that was started without it has nobody, and one that
// leaves is missed. Of those that are shut out see package gossip.
func TestGossip_MeetsThoseThatGossip(t *testing.T) {
	t.Parallel()
	all := make([]*apptest.Portal, 5)
	ops := make([]*apptest.Client, 5)
	for i := range all {
		all[i] = apptest.Start(t, func(c *app.Config) {
			if i == 4 {
				c.Gossip = app.GossipOff
			}
		})
		ops[i] = all[i].Operator(t, "olga")
		if i > 0 {
			if err := all[i].Greet(t.Context(), all[0].URL()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, by := range ops[:4] {
		g := gossips(t, by, func(g federation.GossipStanding) bool { return g.Members == 3 })
		if !g.Running || g.By != "https" || g.Zone != "" || g.Sent+g.Asked == 0 {
			t.Errorf("%+v", g)
		}
	}
	refused := make([]int, 4)
	// Packets from a portal that the receiver has not met yet are refused; from
	// here on all have met.
	for i, by := range ops[:4] {
		refused[i] = int(gossips(t, by, func(federation.GossipStanding) bool { return true }).Refused)
	}
	ops[4].Must(http.MethodGet, "/api/v1/peers/gossip", nil, http.StatusServiceUnavailable)
	page := ops[0].Must(http.MethodGet, "/admin/peers", nil, http.StatusOK)
	if !strings.Contains(string(page.Body), "3 portals announce to this one") {
		t.Error("the page does not say who gossips")
	}
	// Who joins tells of its head, once there is somebody to tell.
	gossips(t, ops[3], func(g federation.GossipStanding) bool { return g.Told > 0 })
	news(ops[1])
	gossips(t, ops[0], func(g federation.GossipStanding) bool { return g.Heard > 0 })
	for i, by := range ops[:4] {
		if g := gossips(t, by, func(federation.GossipStanding) bool { return true }); int(g.Refused) != refused[i] {
			t.Errorf("it refuses packets of portals that it has met: %d before, %+v", refused[i], g)
		}
	}
	// One that ends says so.
	all[2].Stop()
	gossips(t, ops[3], func(g federation.GossipStanding) bool { return g.Members == 2 && g.Gone == 1 && g.Lost == 1 })
}

// TestGossip_MeetsOverUDP has portals that have an address each gossip by
// datagrams on one port, as on a network of one owner.
func TestGossip_MeetsOverUDP(t *testing.T) {
	t.Parallel()
	port := freePort(t, "127.0.0.1", "127.0.0.2", "127.0.0.3")
	all := make([]*apptest.Portal, 3)
	ops := make([]*apptest.Client, 3)
	for i := range all {
		all[i] = apptest.Start(t, func(c *app.Config) {
			host := fmt.Sprintf("127.0.0.%d", i+1)
			c.Listen, c.Gossip = host+":0", fmt.Sprintf("%s:%d", host, port)
		})
		ops[i] = all[i].Operator(t, "olga")
		if i > 0 {
			if err := all[i].Greet(t.Context(), all[0].URL()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, by := range ops {
		g := gossips(t, by, func(g federation.GossipStanding) bool { return g.Members == 2 })
		if !g.Running || g.By != fmt.Sprintf("127.0.0.%d:%d", i+1, port) || g.Sent+g.Refused > 0 {
			t.Errorf("%+v", g)
		}
	}
	news(ops[1])
	gossips(t, ops[0], func(g federation.GossipStanding) bool { return g.Heard > 0 })
	// One that ends says so.
	all[1].Stop()
	gossips(t, ops[2], func(g federation.GossipStanding) bool { return g.Members == 1 && g.Gone == 1 })
}

// freePort is a port that is free for datagrams and connections at all of these
// addresses, and that no test gets which takes any.
func freePort(t *testing.T, hosts ...string) int {
	t.Helper()
	free := func(port int) bool {
		for _, h := range hosts {
			addr := fmt.Sprintf("%s:%d", h, port)
			u, err := net.ListenPacket("udp", addr)
			if err != nil {
				return false
			}
			u.Close()
			c, err := net.Listen("tcp", addr)
			if err != nil {
				return false
			}
			c.Close()
		}
		return true
	}
	for range 20 {
		if port := 12000 + rand.IntN(18000); free(port) {
			return port
		}
	}
	if runtime.GOOS == "linux" { // which has them all
		t.Fatalf("no port is free at all of %v", hosts)
	}
	t.Skipf("this machine has not all of the addresses %v", hosts)
	return 0
}
