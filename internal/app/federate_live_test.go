package app

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/testing/storetest"
)

// joined runs a portal of a network of the test's own and returns it with the
// address that others join.
func joined(t *testing.T, join string) *Portal {
	t.Helper()
	cfg := Defaults()
	cfg.Listen, cfg.Data, cfg.Network, cfg.Join, cfg.CheapHashes = "127.0.0.1:0", t.TempDir(), "agentsite-test", join, true
	p, err := Open(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- p.Run(ctx, lineWriter{ready}, io.Discard) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-done:
		done <- err
		t.Fatal(err)
	}
	return p
}

// lineWriter says once that something was written.
type lineWriter struct{ ready chan string }

func (w lineWriter) Write(b []byte) (int, error) {
	select {
	case w.ready <- string(b):
	default:
	}
	return len(b), nil
}

// What one portal's own agents are said to be reaches another through the
// doors of both, signed and verified.
func TestFederated_WordsAboutLivenessReachOthers(t *testing.T) {
	t.Parallel()
	one := joined(t, "")
	two := joined(t, one.URL())
	db := storetest.Join(one.db)
	ours := storetest.Agent(t, db, "echo", storetest.Account(t, db, "ada"))
	ours.Liveness = hub.Liveness{State: hub.Unreachable, CheckedAt: clock.Now()} // as a check of it finds it, too
	one.node.OwnContacted(ours)
	id := record.AgentID(one.node.ID, strings.ToLower(ours.ID))
	host := strings.TrimPrefix(one.URL(), "http://")
	wait, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		l, _ := two.node.Reports(hub.Agent{ID: id, Portal: host})
		if l.State == hub.Unreachable {
			if l.Reason != "Its portal says that it cannot be reached." {
				t.Error(l.Reason)
			}
			break
		}
		select {
		case <-tick.C:
		case <-wait.Done():
			t.Fatalf("%+v; it knows %+v", l, two.node.Peers.Portals(t.Context()))
		}
	}
	two.node.RemoteCalled(hub.Agent{Kind: hub.Peer, PortalID: string(one.node.ID), NetworkID: id}, true)
	l, voices := two.node.Reports(hub.Agent{ID: id, Portal: host})
	if l.State != hub.Alive || len(voices) != 2 || voices[0].Role != hub.RoleHere || !voices[0].Called || voices[1].Role != hub.RoleHome {
		t.Errorf("%+v, %+v", l, voices)
	}
	if record.ReachOf(string(hub.Unknown)) != 0 {
		t.Error("not knowing is a state that others are told of")
	}
}
