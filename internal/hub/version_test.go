package hub_test

import (
	"encoding/json"
	"slices"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func TestVersions_DiffAndRollback(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper", func(d *hub.Draft) {
		d.Skills = &[]hub.Skill{{ID: "a", Name: "First", Tags: []string{"one"}}}
		d.Secret = ptr("sk-1")
	}))
	edit := func(d hub.Draft) hub.Agent {
		t.Helper()
		a, err := w.Update(ctx, w.ada, "helper", d)
		must(t, err)
		return a
	}
	edit(hub.Draft{Description: ptr("It helps more."), Note: "Say more", Skills: &[]hub.Skill{{ID: "b", Name: "Second"}}})
	last := edit(hub.Draft{Endpoint: ptr("https://other.example/v1"), Config: map[string]json.RawMessage{"model": json.RawMessage(`"m-2"`)}})
	if again := edit(hub.Draft{Description: ptr("It helps more.")}); again.Version != last.Version {
		t.Errorf("an edit that changes nothing made version %d", again.Version)
	}
	list, _, err := w.Versions(ctx, ident.Actor{}, "helper", 0)
	must(t, err)
	if len(list) != 3 || list[1].Note != "Say more" || list[1].Author != "ada" || list[0].Version != 3 {
		t.Fatalf("%+v", list)
	}
	at, before, err := w.VersionOf(ctx, ident.Actor{}, "helper", 2)
	must(t, err)
	var fields []string
	for _, c := range hub.Diff(*before, at) {
		fields = append(fields, c.Field)
	}
	if !slices.Equal(fields, []string{"Description", "Skill a", "Skill b"}) {
		t.Errorf("version 2 changed %q", fields)
	}
	if latest, _, err := w.VersionOf(ctx, ident.Actor{}, "helper", 0); err != nil || latest.Version != 3 {
		t.Errorf("latest is %d, %v", latest.Version, err)
	}
	_, _, err = w.VersionOf(ctx, ident.Actor{}, "helper", 9)
	kind(t, "no such version", err, fault.NotFound)

	_, err = w.Rollback(ctx, w.bob, "helper", 1, 0)
	kind(t, "a stranger goes back", err, fault.Forbidden)
	_, err = w.Rollback(ctx, w.ada, "helper", 3, 0)
	kind(t, "back to the latest", err, fault.Invalid)
	_, err = w.Rollback(ctx, w.ada, "helper", 1, 2)
	kind(t, "from an old page", err, fault.Conflict)
	back, err := w.Rollback(ctx, w.ada, "helper", 1, 3)
	must(t, err)
	if back.Version != 4 || back.Description != "It helps." || back.Endpoint != "https://models.example/v1" || len(back.Skills) != 1 || back.Skills[0].ID != "a" {
		t.Errorf("%+v", back)
	}
	if back.HasSecret {
		t.Error("the credential of another site's version was kept")
	}
	if changes := hub.Diff(list[2], back); len(changes) != 0 {
		t.Errorf("differs from version 1: %v", changes)
	}
	page, err := w.Search(ctx, ident.Actor{}, hub.Query{Text: "first"})
	if err != nil || len(page.Results) != 1 {
		t.Errorf("the search does not know: %v", err)
	}
}

func TestVersions_WhatWasPrivateStaysWithItsOwners(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("helper", func(d *hub.Draft) {
		d.Status = &hub.Status{State: hub.StatusDraft}
		d.Description = ptr("Secret plans")
	}))
	_, err := w.Get(ctx, w.bob, "helper")
	kind(t, "a stranger sees a draft", err, fault.NotFound)
	if page, _ := w.Search(ctx, ident.Actor{}, hub.Query{Text: "plans"}); len(page.Results) != 0 {
		t.Error("a draft is found")
	}
	_, err = w.Update(ctx, w.ada, "helper", hub.Draft{Description: ptr("It helps"), Status: &hub.Status{State: hub.Active}})
	must(t, err)
	list, _, err := w.Versions(ctx, w.bob, "helper", 0)
	if err != nil || len(list) != 1 {
		t.Errorf("a stranger sees %d versions, %v", len(list), err)
	}
	_, _, err = w.VersionOf(ctx, w.bob, "helper", 1)
	kind(t, "the draft's version", err, fault.NotFound)
	_, err = w.Update(ctx, w.ada, "helper", hub.Draft{Status: &hub.Status{State: hub.StatusDraft}})
	kind(t, "back to a draft", err, fault.Invalid)
	a, err := w.Update(ctx, w.ada, "helper", hub.Draft{Status: &hub.Status{State: hub.Deprecated, Message: "Use helper2."}})
	if err != nil || a.Status.Message != "Use helper2." {
		t.Error(a.Status, err)
	}
	if _, err := w.Callable(ctx, w.bob, "helper"); err != nil {
		t.Errorf("a deprecated agent takes no work: %v", err)
	}
}
