package hub_test

import (
	"context"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func TestTransfer_LeavesTheCredentialBehind(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	a := w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Secret = ptr("sk-of-ada") }))
	must(t, w.Offer(ctx, w.ada, "helper", "bob"))
	must(t, w.Answer(ctx, w.bob, "helper", true))
	now, secret, err := w.Open(ctx, a.ID)
	if err != nil || now.HasSecret || secret != "" {
		t.Errorf("the next owner has %q, %v, %v", secret, now.HasSecret, err)
	}
}

func TestUpdate_AnOperatorsWithdrawalIsHeld(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper"))
	a, err := w.Update(ctx, w.boss, "helper", hub.Draft{Status: &hub.Status{State: hub.Withdrawn, Message: "It pretends."}})
	if err != nil || !a.Status.Held {
		t.Fatalf("%+v, %v", a.Status, err)
	}
	if n := w.notices(w.ada); len(n) != 1 || n[0].Kind != hub.NoticeHeld {
		t.Errorf("the owner was told %v", n)
	}
	_, err = w.Update(ctx, w.ada, "helper", hub.Draft{Status: &hub.Status{State: hub.Active}})
	kind(t, "the owner puts it back", err, fault.Forbidden)
	// What its owner withdraws is the owner's to put back.
	w.publish(w.ada, draft("other"))
	if a, err = w.Update(ctx, w.ada, "other", hub.Draft{Status: &hub.Status{State: hub.Withdrawn}}); err != nil || a.Status.Held {
		t.Errorf("%+v, %v", a.Status, err)
	}
	if _, err = w.Update(ctx, w.ada, "other", hub.Draft{Status: &hub.Status{State: hub.Active}}); err != nil {
		t.Error(err)
	}
}

// tryer says which credential it was given.
type tryer struct{}

func (tryer) Try(_ context.Context, _ ident.Actor, a hub.Agent, secret, _ string) (hub.Tried, error) {
	return hub.Tried{State: "completed", Text: a.Name + " " + secret}, nil
}

func TestTry_AnEditKeepsItsCredentialAndAsksNobody(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Secret = ptr("sk-1") }))
	w.reader.err = fault.New(fault.Invalid, "There is something of another kind.")
	got, err := w.Try(t.Context(), w.ada, "helper", draft("helper"), "Hello")
	if err != nil || got.Text != "helper sk-1" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = w.Try(t.Context(), w.ada, "helper", draft("helper", func(d *hub.Draft) { d.Endpoint = ptr("https://other.example/v1") }), "Hello")
	if err != nil || got.Text != "helper " {
		t.Errorf("the credential went to another site: %+v, %v", got, err)
	}
}

func TestMoved_ToldWheneverARightMayHaveEnded(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper"))
	must(t, w.AddCoOwner(ctx, w.ada, "helper", "bob"))
	for name, act := range map[string]func() error{
		"shared no longer": func() error { return w.RemoveCoOwner(ctx, w.ada, "helper", "bob") },
		"held": func() error {
			if _, err := w.Hold(ctx, w.boss, "helper", true, ""); err != nil {
				return err
			}
			_, err := w.Hold(ctx, w.boss, "helper", false, "")
			return err
		},
		"given away": func() error {
			w.publish(w.ada, draft("gift"))
			if err := w.Offer(ctx, w.ada, "gift", "bob"); err != nil {
				return err
			}
			return w.Answer(ctx, w.bob, "gift", true)
		},
		"removed": func() error {
			w.publish(w.ada, draft("short"))
			return w.Delete(ctx, w.ada, "short")
		},
	} {
		before := len(w.moved)
		if err := act(); err != nil {
			t.Fatal(name, err)
		}
		if len(w.moved) == before {
			t.Errorf("%s: nobody was told", name)
		}
	}
}
