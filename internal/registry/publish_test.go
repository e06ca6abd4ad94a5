package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/registry"
)

var (
	guest = ident.Actor{Kind: ident.Guest}
	// acme proved acme.example over HTTP, acmeDNS with its records.
	acme    = ident.Actor{Kind: ident.Publisher, Name: "acme.example"}
	acmeDNS = ident.Actor{Kind: ident.Publisher, Name: "acme.example", Below: true}
)

// release is a version of a server; an empty endpoint makes it one to install.
func release(name, version, endpoint string) registry.Release {
	r := registry.Release{Name: name, Version: version, Title: "Tool", Description: "Version " + version, Endpoint: endpoint, Document: []byte(`{"version":"` + version + `"}`)}
	if endpoint != "" {
		r.Remotes = []string{endpoint}
	}
	return r
}

func (w *world) released(actor ident.Actor, r registry.Release) registry.Release {
	w.t.Helper()
	out, err := w.PublishRelease(w.t.Context(), actor, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// releases writes down a list in short.
func (w *world) releases(f registry.Filter) string {
	w.t.Helper()
	if f.Limit == 0 {
		f.Limit = 100
	}
	list, _, err := w.Releases(w.t.Context(), guest, f)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		s := r.Name + " " + r.Version + " " + r.Status
		if r.Latest {
			s += " latest"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func (w *world) agentOf(name string) hub.Agent {
	w.t.Helper()
	a, err := w.Get(w.t.Context(), w.boss, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) mark(actor ident.Actor, name, version, status string) {
	w.t.Helper()
	if _, err := w.SetReleaseStatus(w.t.Context(), actor, name, version, status, nil); err != nil {
		w.t.Fatal(err)
	}
}

// One server is one agent, which says what the latest version says.
func TestPublishRelease_MakesOneAgent(t *testing.T) {
	t.Parallel()
	w := open(t)
	out := w.released(acme, release("example.acme/tool", "1.2.0", "https://acme.example/mcp"))
	if !out.Latest || out.Status != registry.ReleaseActive || out.Agent != "tool-acme-example" || string(out.Document) != `{"version":"1.2.0"}` {
		t.Fatalf("%+v", out)
	}
	a := w.agentOf("tool-acme-example")
	if a.Kind != hub.MCP || a.Endpoint != "https://acme.example/mcp" || a.OwnerID != "" || a.Publisher != "acme.example" || a.Visibility != hub.Public || w.found() != a.Name {
		t.Fatalf("%+v, found %q", a, w.found())
	}
	w.released(acme, release("example.acme/tool", "1.10.0", "https://acme.example/mcp/2"))
	w.released(acme, release("example.acme/tool", "1.9.0", "https://acme.example/mcp/old"))
	if now := w.agentOf(a.Name); now.Endpoint != "https://acme.example/mcp/2" || now.Description != "Version 1.10.0" || now.ID != a.ID {
		t.Errorf("%+v", now)
	}
	versions, _, err := w.Versions(t.Context(), guest, a.Name, 0)
	if err != nil || len(versions) < 2 || !slices.ContainsFunc(versions, func(v hub.Agent) bool { return v.Note == "Version 1.10.0 of the MCP registry" }) {
		t.Errorf("%+v %v", versions, err)
	}
	if got, want := w.releases(registry.Filter{}), "example.acme/tool 1.10.0 active latest, example.acme/tool 1.2.0 active, example.acme/tool 1.9.0 active"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err = w.PublishRelease(t.Context(), acme, release("example.acme/tool", "1.9.0", "https://acme.example/mcp"))
	kind(t, "a version again", err, fault.Conflict)
}

// Status goes from the releases to the agent and back.
func TestReleaseStatus_IsTheAgents(t *testing.T) {
	t.Parallel()
	w := open(t)
	const name = "example.acme/tool"
	for _, v := range []string{"1.0.0", "2.0.0"} {
		w.released(acme, release(name, v, "https://acme.example/mcp/"+v))
	}
	is := func(what, state, endpoint, list string) {
		t.Helper()
		a := w.agentOf("tool-acme-example")
		if a.Status.State != state || a.Endpoint != endpoint {
			t.Errorf("%s: the agent is %s at %s", what, a.Status.State, a.Endpoint)
		}
		if got := w.releases(registry.Filter{Deleted: true}); got != list {
			t.Errorf("%s: %s", what, got)
		}
	}
	w.mark(acme, name, "2.0.0", registry.ReleaseDeprecated)
	is("deprecated", hub.Deprecated, "https://acme.example/mcp/2.0.0", name+" 1.0.0 active, "+name+" 2.0.0 deprecated latest")
	w.mark(acme, name, "2.0.0", registry.ReleaseDeleted)
	is("the latest deleted", hub.Active, "https://acme.example/mcp/1.0.0", name+" 1.0.0 active latest, "+name+" 2.0.0 deleted")
	w.mark(acme, name, "", registry.ReleaseDeleted)
	is("all deleted", hub.Withdrawn, "https://acme.example/mcp/1.0.0", name+" 1.0.0 deleted, "+name+" 2.0.0 deleted latest")
	if got := w.releases(registry.Filter{}); got != "" {
		t.Errorf("without what is deleted: %s", got)
	}
	w.mark(acme, name, "", registry.ReleaseActive)
	is("all back", hub.Active, "https://acme.example/mcp/2.0.0", name+" 1.0.0 active, "+name+" 2.0.0 active latest")
	_, err := w.SetReleaseStatus(t.Context(), acme, name, "", registry.ReleaseActive, nil)
	kind(t, "nothing to change", err, fault.Invalid)

	// The operator has the last word.
	if _, err := w.Hold(t.Context(), w.boss, "tool-acme-example", true, "Spam."); err != nil {
		t.Fatal(err)
	}
	is("held", hub.Withdrawn, "https://acme.example/mcp/2.0.0", name+" 1.0.0 deleted, "+name+" 2.0.0 deleted latest")
	_, err = w.SetReleaseStatus(t.Context(), acme, name, "", registry.ReleaseActive, nil)
	kind(t, "to put back what is held", err, fault.Forbidden)
	_, err = w.PublishRelease(t.Context(), acme, release(name, "3.0.0", "https://acme.example/mcp"))
	kind(t, "to publish what is held", err, fault.Forbidden)
	if _, err := w.Hold(t.Context(), w.boss, "tool-acme-example", false, ""); err != nil {
		t.Fatal(err)
	}
	is("given back", hub.Active, "https://acme.example/mcp/2.0.0", name+" 1.0.0 active, "+name+" 2.0.0 active latest")
	if err := w.Delete(t.Context(), w.boss, "tool-acme-example"); err != nil {
		t.Fatal(err)
	}
	list, _, err := w.Releases(t.Context(), guest, registry.Filter{Deleted: true, Limit: 10})
	if err != nil || len(list) != 2 || !list[0].Removed || list[0].Status != registry.ReleaseDeleted {
		t.Errorf("removed: %+v %v", list, err)
	}
	_, err = w.PublishRelease(t.Context(), acme, release(name, "3.0.0", "https://acme.example/mcp"))
	kind(t, "to publish what was removed", err, fault.Conflict)
}

// The operator edits what nobody owns, and the domain it was published under
// stays; whoever gets it publishes under their own.
func TestPublishRelease_OwnerlessAgent(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.released(acme, release("example.acme/tool", "1.0.0", "https://acme.example/mcp"))
	const name = "tool-acme-example"
	_, err := w.Update(t.Context(), w.ada, name, hub.Draft{Title: ptr("Mine")})
	kind(t, "somebody edits it", err, fault.Forbidden)
	a, err := w.Update(t.Context(), w.boss, name, hub.Draft{Title: ptr("Better"), Publisher: ptr("acme.example")})
	if err != nil || a.Title != "Better" || a.Publisher != "acme.example" {
		t.Fatalf("%+v %v", a, err)
	}
	_, err = w.Update(t.Context(), w.boss, name, hub.Draft{Publisher: ptr("other.example")})
	kind(t, "under another domain", err, fault.Invalid)
	if a, err = w.Rollback(t.Context(), w.boss, name, 1, 0); err != nil || a.Title != "Tool" || a.Publisher != "acme.example" {
		t.Errorf("%+v %v", a, err)
	}
	if err := w.Offer(t.Context(), w.boss, name, "ada"); err != nil {
		t.Fatal(err)
	}
	if err := w.Answer(t.Context(), w.ada, name, true); err != nil {
		t.Fatal(err)
	}
	if a = w.agentOf(name); a.OwnerID != w.ada.ID || a.Publisher != "" {
		t.Errorf("%+v", a)
	}
	// The domain still says what its server is.
	w.released(acme, release("example.acme/tool", "1.1.0", "https://acme.example/mcp/2"))
	if a = w.agentOf(name); a.Endpoint != "https://acme.example/mcp/2" || a.OwnerID != w.ada.ID || a.Publisher != "" {
		t.Errorf("%+v", a)
	}
}

// What has no address to call is in the registry and nowhere else.
func TestPublishRelease_WithoutAddressIsNoAgent(t *testing.T) {
	t.Parallel()
	w := open(t)
	if out := w.released(acme, release("example.acme/pack", "1.0.0", "")); out.Agent != "" || w.found() != "" {
		t.Errorf("%+v, found %q", out, w.found())
	}
	if out := w.released(acme, release("example.acme/pack", "1.1.0", "https://acme.example/mcp")); out.Agent != "pack-acme-example" {
		t.Errorf("%+v", out)
	}
	w.released(acme, release("example.acme/pack", "1.2.0", ""))
	if a := w.agentOf("pack-acme-example"); a.Status.State != hub.Deprecated || a.Endpoint != "https://acme.example/mcp" || !strings.Contains(a.Status.Message, "1.2.0") {
		t.Errorf("%+v", a)
	}
	if got := w.releases(registry.Filter{Latest: true}); got != "example.acme/pack 1.2.0 active latest" {
		t.Error(got)
	}

	// Where there is no agent to withdraw, the operator takes the server away.
	w.released(acme, release("example.acme/other", "1.0.0", ""))
	admin := narrowed(w.boss, ident.Admin)
	w.mark(admin, "example.acme/other", "", registry.ReleaseDeleted)
	_, err := w.SetReleaseStatus(t.Context(), acme, "example.acme/other", "1.0.0", registry.ReleaseActive, nil)
	kind(t, "to put back what the operator deleted", err, fault.Forbidden)
	_, err = w.PublishRelease(t.Context(), acme, release("example.acme/other", "1.1.0", ""))
	kind(t, "to publish it anew", err, fault.Forbidden)
	w.mark(admin, "example.acme/other", "", registry.ReleaseActive)
	w.released(acme, release("example.acme/other", "1.1.0", ""))
}

func TestPublishRelease_AsksForTheRight(t *testing.T) {
	t.Parallel()
	w := open(t)
	const there = "https://acme.example/mcp"
	mine := w.publish(w.ada, draft("mine", func(d *hub.Draft) { d.Kind, d.Endpoint, d.Config = ptr(hub.MCP), ptr("https://ada.example/mcp"), nil }))
	w.publish(w.ada, draft("model"))
	for _, proved := range []string{"bob.example", "shared.example:8443", "victim.github.io", "192.0.2.7"} {
		must(t, w.db.SetDomain(t.Context(), w.bob.ID, proved, true))
	}
	for _, c := range []struct {
		what  string
		actor ident.Actor
		name  string
		want  fault.Kind
	}{
		{"a guest", guest, "example.acme/tool", fault.Unauthenticated},
		{"nobody", ident.Actor{}, "example.acme/tool", fault.Unauthenticated},
		{"another domain", acme, "example.other/tool", fault.Forbidden},
		{"the domain below, by HTTP", acme, "example.acme.sub/tool", fault.Forbidden},
		{"a domain that begins alike", acmeDNS, "example.acmeevil/tool", fault.Forbidden},
		{"the portal's namespace", ident.Actor{Kind: ident.Publisher, Name: "home.example"}, "example.home/tool", fault.Forbidden},
		{"the portal's namespace, from above", ident.Actor{Kind: ident.Publisher, Name: "example", Below: true}, "example.home/tool", fault.Forbidden},
		{"in capitals", acme, "example.Acme/tool", fault.Forbidden},
		{"an account without the domain", w.ada, "example.bob/tool", fault.Forbidden},
		{"an account with a port of the domain", w.bob, "example.shared/tool", fault.Forbidden},
		{"an account with a page at GitHub", w.bob, "io.github.victim/tool", fault.Forbidden},
		{"an account with an address", w.bob, "7.2.0.192/tool", fault.Forbidden},
		{"a token without the scope", narrowed(w.bob, ident.AgentsRead), "example.bob/tool", fault.Forbidden},
		{"somebody else's agent", w.bob, "example.home/mine", fault.Forbidden},
		{"an agent of another kind", w.ada, "example.home/model", fault.Conflict},
		{"reserved by the portal", w.ada, "example.home/admin", fault.Invalid},
		{"two slashes", acme, "example.acme/a/b", fault.Invalid},
	} {
		r := release(c.name, "1.0.0", there)
		_, err := w.PublishRelease(t.Context(), c.actor, r)
		kind(t, c.what, err, c.want)
	}
	if got := w.releases(registry.Filter{Search: "tool"}); got != "" {
		t.Fatalf("published: %s", got)
	}
	w.released(acmeDNS, release("example.acme.sub/tool", "1.0.0", there))
	w.released(narrowed(w.bob, ident.AgentsWrite), release("example.bob/tool", "1.0.0", "https://bob.example/mcp"))
	if a := w.agentOf("tool-bob-example"); a.OwnerID != w.bob.ID || a.Publisher != "bob.example" {
		t.Errorf("%+v", a)
	}
	// What was registered becomes what is published.
	if got := w.releases(registry.Filter{Search: "mine"}); got != "example.home/mine 1.0.0 active latest" {
		t.Error(got)
	}
	w.released(w.ada, release("example.home/mine", "0.1.0", "https://ada.example/mcp2"))
	if a := w.agentOf("mine"); a.ID != mine.ID || a.Endpoint != "https://ada.example/mcp2" || a.Version != 2 {
		t.Errorf("%+v", a)
	}
	if got := w.releases(registry.Filter{Search: "mine"}); got != "example.home/mine 0.1.0 active latest" {
		t.Error(got)
	}
	_, err := w.SetReleaseStatus(t.Context(), w.bob, "example.home/mine", "0.1.0", registry.ReleaseDeleted, nil)
	kind(t, "the status of somebody else's", err, fault.Forbidden)
	_, err = w.SetReleaseStatus(t.Context(), acme, "example.bob/tool", "1.0.0", registry.ReleaseDeleted, nil)
	kind(t, "the status of another domain's", err, fault.Forbidden)
	w.mark(w.boss, "example.bob/tool", "1.0.0", registry.ReleaseDeleted)
	_, err = w.PublishRelease(t.Context(), acme, release("example.acme/copy", "1.0.0", there))
	kind(t, "an address of another server", err, fault.Invalid)
}

// Agents that were registered are listed beside what was published, if they
// are public, and page by page nothing is lost or doubled.
func TestReleases_ListsRegisteredAgentsInOrder(t *testing.T) {
	t.Parallel()
	w := open(t)
	var want []string
	for i := range 7 {
		w.released(acmeDNS, release(fmt.Sprintf("example.%s/t%d", []string{"acme", "acme.zzz"}[i%2], i), "1.0.0", ""))
		w.publish(w.ada, draft(fmt.Sprintf("agent-%d", i), func(d *hub.Draft) {
			d.Kind, d.Endpoint, d.Config = ptr(hub.MCP), ptr("https://ada.example/mcp"), nil
			if i == 3 {
				d.Visibility = ptr(hub.Private)
			}
		}))
	}
	for i := range 7 {
		want = append(want, fmt.Sprintf("example.%s/t%d 1.0.0", []string{"acme", "acme.zzz"}[i%2], i))
		if i != 3 {
			want = append(want, fmt.Sprintf("example.home/agent-%d 1.0.0", i))
		}
	}
	slices.Sort(want)
	for _, limit := range []int{1, 2, 5, 100} {
		var got []string
		f := registry.Filter{Limit: limit}
		for more := true; more; {
			list, next, err := w.Releases(t.Context(), guest, f)
			if err != nil || len(list) > limit || next && len(list) != limit {
				t.Fatal(list, next, err)
			}
			for _, r := range list {
				got = append(got, r.Name+" "+r.Version)
				f.AfterName, f.AfterVersion = r.Name, r.Version
			}
			more = next
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %v\nwant %v", limit, got, want)
		}
	}
}

// Two who publish at once do not undo each other.
func TestPublishRelease_AtOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for i := range 8 {
		wg.Go(func() {
			_, err := w.PublishRelease(t.Context(), acme, release("example.acme/tool", fmt.Sprintf("1.%d.0", i), "https://acme.example/mcp"))
			mu.Lock()
			defer mu.Unlock()
			if fault.Is(err, fault.Unavailable) {
				refused++ // too many at once: to be tried again
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, _, err := w.Releases(t.Context(), guest, registry.Filter{Limit: 100})
	latest := 0
	for _, r := range list {
		if r.Latest {
			latest++
		}
	}
	if err != nil || len(list) != 8-refused || latest != 1 || refused > 6 {
		t.Errorf("%d stored, %d refused, %d the latest, %v", len(list), refused, latest, err)
	}
	if a := w.agentOf("tool-acme-example"); a.Description != "Version "+latestOf(list) {
		t.Errorf("the agent says %q, the latest is %s", a.Description, latestOf(list))
	}
}

func latestOf(list []registry.Release) string {
	for _, r := range list {
		if r.Latest {
			return r.Version
		}
	}
	return ""
}
