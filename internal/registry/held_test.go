package registry_test

import (
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/registry"
)

// What the operator takes away, the owner of its agent must not put back by
// another door.
func TestSetReleaseStatus_HoldsTheAgentToo(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	must(t, w.db.SetDomain(ctx, w.bob.ID, "bob.example", true))
	const name, agent = "example.bob/tool", "tool-bob-example"
	w.released(w.bob, release(name, "1.0.0", "https://bob.example/mcp"))
	w.mark(w.boss, name, "", registry.ReleaseDeleted)
	_, err := w.Update(ctx, w.bob, agent, hub.Draft{Status: &hub.Status{State: hub.Active}})
	kind(t, "the agent put back by its owner", err, fault.Forbidden)
	_, err = w.PublishRelease(ctx, w.bob, release(name, "1.0.1", "https://bob.example/mcp"))
	kind(t, "another version", err, fault.Forbidden)
	w.mark(w.boss, name, "", registry.ReleaseActive)
	if a := w.agentOf(agent); a.Status.State != hub.Active || a.Status.Held {
		t.Errorf("given back: %+v", a.Status)
	}
	w.mark(w.bob, name, "", registry.ReleaseDeleted)
	if a := w.agentOf(agent); a.Status.State != hub.Withdrawn || a.Status.Held {
		t.Errorf("withdrawn by its publisher: %+v", a.Status)
	}
	_, err = w.Update(ctx, w.bob, agent, hub.Draft{Status: &hub.Status{State: hub.Active}})
	must(t, err)
}

// Under the portal's own namespace everybody with an account may publish, but
// what the operator deletes of others is held all the same.
func TestSetReleaseStatus_HoldsWhatIsPublishedUnderThePortal(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	const name, agent = "example.home/mine", "mine"
	w.released(w.ada, release(name, "1.0.0", "https://ada.example/mcp"))
	w.mark(w.boss, name, "", registry.ReleaseDeleted)
	_, err := w.Update(ctx, w.ada, agent, hub.Draft{Status: &hub.Status{State: hub.Active}})
	kind(t, "the agent put back by its owner", err, fault.Forbidden)
	_, err = w.SetReleaseStatus(ctx, w.ada, name, "", registry.ReleaseActive, nil)
	kind(t, "the release put back by its owner", err, fault.Forbidden)
	w.mark(w.boss, name, "", registry.ReleaseActive)
	w.mark(w.ada, name, "", registry.ReleaseDeleted)
	w.mark(w.ada, name, "", registry.ReleaseActive)
}

// A publisher who was quicker to delete it does not keep the last word.
func TestSetReleaseStatus_HoldsWhatIsDeletedAlready(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	for name, endpoint := range map[string]string{"example.acme/tool": "https://acme.example/mcp", "example.acme/pack": ""} {
		w.released(acme, release(name, "1.0.0", endpoint))
		w.mark(acme, name, "", registry.ReleaseDeleted)
		w.mark(w.boss, name, "", registry.ReleaseDeleted)
		_, err := w.SetReleaseStatus(ctx, acme, name, "", registry.ReleaseActive, nil)
		kind(t, name, err, fault.Forbidden)
		_, err = w.SetReleaseStatus(ctx, w.boss, name, "", registry.ReleaseDeleted, nil)
		kind(t, "nothing to change", err, fault.Invalid)
	}
}
