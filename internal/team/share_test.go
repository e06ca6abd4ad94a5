package team_test

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/team/flow"
)

func TestShare_IsReadUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		id := w.ends(w.start("Add 1 and 2.")).ID
		secret, err := w.Share(t.Context(), ada, id, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.Share(t.Context(), ada, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		reads := func(secret string) bool {
			t.Helper()
			v, events, err := w.GetShared(t.Context(), id, secret, 3)
			if err != nil && !fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}
			return err == nil && v.State.Phase == flow.Concluded && len(events) == 3
		}
		other := w.ends(w.start("Multiply 1 and 2.")).ID
		for _, c := range []struct{ id, secret string }{{other, secret}, {id, "agsg_x"}, {id, ident.HashSecret(secret)},
			{"x", secret}, {ident.NewID(), secret}, {id, ""}} {
			if _, _, err := w.GetShared(t.Context(), c.id, c.secret, 3); !fault.Is(err, fault.NotFound) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		bob := ident.Actor{Kind: ident.Person, ID: "bob", Name: "bob"}
		if _, err := w.Share(t.Context(), bob, id, 0); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
		if err := w.Unshare(t.Context(), bob, id, ident.HashSecret(second)); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
		w.stop()
		w.run() // the links are in the log
		if !reads(secret) || !reads(second) {
			t.Error("a link does not work")
		}
		time.Sleep(24 * time.Hour)
		if reads(secret) || !reads(second) {
			t.Error("the first link should have ended, and not the second one")
		}
		if err := w.Unshare(t.Context(), ada, id, ident.HashSecret(second)); err != nil || reads(second) {
			t.Error("an ended link works", err)
		}
		for range flow.MaxShares {
			if _, err := w.Share(t.Context(), ada, id, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Share(t.Context(), ada, id, 0); !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
		for _, life := range []time.Duration{time.Second, -1, 366 * 24 * time.Hour} {
			if _, err := w.Share(t.Context(), ada, id, life); !fault.Is(err, fault.Invalid) {
				t.Error(life, err)
			}
		}
	})
}
