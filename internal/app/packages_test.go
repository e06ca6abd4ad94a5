package app_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/personal"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// sawPackage is a package as the API shows it.
type sawPackage struct {
	Handle, Version, State, Note, Module, Author string
	Downloads                                    int
	Versions                                     []struct{ Version, State string }
	Runs                                         []struct{ Agent, Version string }
}

// publishPackage uploads a module and publishes it as a version of a package.
func publishPackage(t *testing.T, c *apptest.Client, name, version string, b []byte,
	more map[string]any) (hash string) {
	t.Helper()
	hash = upload(t, c, name+".wasm", b)
	body := map[string]any{"name": name, "version": version, "summary": "Says hello to people.", "licence": "MIT",
		"module": hash, "readme": "# Hello\n\nIt says hello."}
	for k, v := range more {
		body[k] = v
	}
	c.Must(http.MethodPost, "/api/v1/packages", body, http.StatusCreated)
	return hash
}

// awaitPackage waits until a portal knows a package, and returns it.
func awaitPackage(t *testing.T, c *apptest.Client, path string, ok func(sawPackage) bool) (p sawPackage) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if a := c.Do(http.MethodGet, "/api/v1/packages/"+path, nil); a.Status == http.StatusOK {
			p = sawPackage{}
			c.Get(http.MethodGet, "/api/v1/packages/"+path, nil, http.StatusOK, &p)
			if ok == nil || ok(p) {
				return p
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s is not as expected: %+v", path, p)
		}
	}
}

// answerOf asks an agent once and returns its answer.
func answerOf(c *apptest.Client, agent, text string) string {
	talk := c.Conversation(agent)
	stream := c.Socket(talk)
	defer stream.Close()
	said := c.Say(talk, text)
	got := stream.Wait("the answer of "+agent, func(e apptest.Event) bool {
		return e.Type == "message" && e.Seq > said.Seq && e.Sender.Kind == "agent"
	})
	if got.Kind != "text" { // the agent failed, with a reason
		return string(got.Raw)
	}
	return got.Plain()
}

// A package that is published on A runs on B and, with A gone, on C, which has the module from B. A kill by A's portal
// binds both before.
func TestPackages_RunOnOtherPortals(t *testing.T) {
	t.Parallel()
	a, b, c := apptest.Start(t), apptest.Start(t), apptest.Start(t)
	ann, bob, cat := a.Operator(t, "ann").NewToken(), b.Operator(t, "bob").NewToken(), c.Operator(t, "cat").NewToken()
	ann.Must(http.MethodPut, "/api/v1/hosting", map[string]string{"policy": "any"}, http.StatusOK)
	for _, pair := range [][2]*apptest.Portal{{b, a}, {c, a}, {c, b}} {
		if err := pair[0].Greet(t.Context(), pair[1].URL()); err != nil {
			t.Fatal(err)
		}
	}
	hello := wasmtest.Says("Hello from afar.").Bytes()
	hash := publishPackage(t, ann, "hello", "1.0.0", hello, map[string]any{"grants": []map[string]string{{"name": "find",
		"why": "It looks for others who say hello."}}})
	far := "hello@" + a.Host
	awaitPackage(t, bob, far, nil)
	awaitPackage(t, cat, far, nil)

	host := func(cl *apptest.Client, want int, grants any) apptest.Answer {
		body := map[string]any{"name": "greeter", "kind": "wasm", "visibility": "public", "package": far + "/1.0.0"}
		if grants != nil {
			body["grants"] = grants
		}
		return cl.Must(http.MethodPost, "/api/v1/agents", body, want)
	}
	if f := host(bob, http.StatusBadRequest, nil).Fields(); !strings.Contains(f["grants"], "looks for others") {
		t.Errorf("the grants are not asked for: %v", f)
	}
	if f := host(bob, http.StatusBadRequest, []string{"model"}).Fields(); f["grants"] == "" {
		t.Error("a grant was given that the package does not ask for")
	}
	host(bob, http.StatusCreated, []string{"find"})
	if got := answerOf(b.User(t, "ben"), "greeter", "hi"); got != "Hello from afar." {
		t.Fatalf("on B: %q", got)
	}
	if p := awaitPackage(t, ann, "hello", nil); p.Downloads != 1 || p.Module != hash {
		t.Errorf("on A: %+v", p)
	}
	runs := func(p sawPackage) bool {
		return len(p.Runs) == 1 && p.Runs[0].Agent == "greeter@"+b.Host && p.Runs[0].Version == "1.0.0"
	}
	awaitPackage(t, ann, "hello", runs)
	awaitPackage(t, cat, far, runs)

	if page := c.Guest(t).Do(http.MethodGet, "/agents/greeter@"+b.Host, nil).Body; !strings.Contains(page, "/packages/"+far) {
		t.Error("the page of the agent names no package")
	} else if _, places, _ := strings.Cut(page, "<dt>Runs at</dt>"); !strings.Contains(places, "greeter@"+b.Host) {
		t.Error("the page of the agent does not say where it runs")
	}
	if page := b.Guest(t).Do(http.MethodGet, "/agents/greeter", nil).Body; !strings.Contains(page, "<dt>Runs at</dt>") {
		t.Error("the page of the agent on B does not say where it runs")
	}
	page := c.LogIn(t, "cat").Must(http.MethodGet, "/packages/"+far, nil, http.StatusOK).Body
	for _, part := range []string{"looks for others", "Host it here", "greeter@" + b.Host, "It says hello.",
		"its operators host", "every account there hosts", b.URL() + "/packages/" + far} {
		if !strings.Contains(page, part) {
			t.Errorf("the page of the package lacks %q", part)
		}
	}

	a.Stop()
	host(cat, http.StatusCreated, []string{})
	if got := answerOf(c.User(t, "cid"), "greeter", "hi"); got != "Hello from afar." {
		t.Fatalf("on C: %q", got)
	}
}

// A version that its author's portal stops ends elsewhere; the word of another portal stops nothing; the own operator
// stops any module.
func TestPackages_AreStopped(t *testing.T) {
	t.Parallel()
	a, b, e := apptest.Start(t), apptest.Start(t), apptest.Start(t)
	ann, bob, eve := a.Operator(t, "ann").NewToken(), b.Operator(t, "bob").NewToken(), e.Operator(t, "eve").NewToken()
	for _, from := range []*apptest.Portal{a, e} {
		if err := b.Greet(t.Context(), from.URL()); err != nil {
			t.Fatal(err)
		}
	}
	hello := wasmtest.Says("Hello.").Bytes()
	hash := publishPackage(t, ann, "hello", "1.0.0", hello, nil)
	publishPackage(t, eve, "copy", "1.0.0", hello, nil)
	awaitPackage(t, bob, "copy@"+e.Host, nil)
	awaitPackage(t, bob, "hello@"+a.Host, nil)
	bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "greeter", "package": "hello@" + a.Host},
		http.StatusCreated)
	ben := b.User(t, "ben")

	killed := func(p sawPackage) bool { return p.State == "killed" && p.Note == "It lies." }
	why := map[string]string{"note": "It lies."}
	eve.Must(http.MethodPost, "/api/v1/packages/copy/1.0.0/kill", map[string]string{}, http.StatusBadRequest)
	eve.Must(http.MethodPost, "/api/v1/packages/copy/1.0.0/kill", why, http.StatusOK)
	awaitPackage(t, bob, "copy@"+e.Host, killed)
	if got := answerOf(ben, "greeter", "hi"); got != "Hello." {
		t.Errorf("after the word of another portal: %q", got)
	}
	var list struct {
		Kills []struct {
			Hash, Portal string
			Binding      bool
		}
	}
	bob.Get(http.MethodGet, "/api/v1/hosting/kills", nil, http.StatusOK, &list)
	if len(list.Kills) != 1 || list.Kills[0].Hash != hash || list.Kills[0].Portal != e.Host || list.Kills[0].Binding {
		t.Errorf("the advice is %+v", list)
	}

	bob.Must(http.MethodPut, "/api/v1/hosting/kills/"+hash, map[string]string{"reason": "I do not trust it."},
		http.StatusOK)
	if got := answerOf(ben, "greeter", "hi"); !strings.Contains(got, "cannot run here") {
		t.Errorf("after the operator's word: %q", got)
	}
	bob.Must(http.MethodDelete, "/api/v1/hosting/kills/"+hash, nil, http.StatusNoContent)
	if got := answerOf(ben, "greeter", "hi"); got != "Hello." {
		t.Errorf("after it was taken back: %q", got)
	}

	ann.Must(http.MethodPost, "/api/v1/packages/hello/1.0.0/kill", why, http.StatusOK)
	awaitPackage(t, bob, "hello@"+a.Host, killed)
	if got := answerOf(ben, "greeter", "hi"); !strings.Contains(got, "cannot run here") {
		t.Errorf("after the word of the author's portal: %q", got)
	}
	if f := bob.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "again", "package": "hello@" + a.Host},
		http.StatusBadRequest).Fields(); !strings.Contains(f["package"], "stopped") {
		t.Errorf("it is hosted again: %v", f)
	}

	// Both notices outlive the portals, the records and a restart.
	for _, p := range []*apptest.Portal{a, e, b} {
		p.Stop()
	}
	b = apptest.Start(t, func(c *app.Config) { c.Data, c.Network = b.Dir, app.NoNetwork }) // it reads no records
	bob = b.LogIn(t, "bob").NewToken()
	bob.Must(http.MethodGet, "/api/v1/packages/hello@"+a.Host, nil, http.StatusNotFound)
	bob.Get(http.MethodGet, "/api/v1/hosting/kills", nil, http.StatusOK, &list)
	if len(list.Kills) != 2 || list.Kills[0].Portal != a.Host || list.Kills[1].Portal != e.Host ||
		list.Kills[0].Binding || list.Kills[1].Binding {
		t.Errorf("the advice after a restart is %+v", list)
	}
	if page := b.LogIn(t, "bob").Do(http.MethodGet, "/admin/hosting", nil).Body; !strings.Contains(page, e.Host) {
		t.Error("the page has no advice after a restart")
	}
	if got := answerOf(b.LogIn(t, "ben"), "greeter", "hi"); !strings.Contains(got, "cannot run here") {
		t.Errorf("after a restart: %q", got)
	}
}

// Versions do not change, belong to their author, and are found by words; withdrawn ones are shown to the author only.
func TestPackages_Versions(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob, ada := p.Operator(t, "rob").NewToken(), p.User(t, "ada").NewToken()
	rob.Must(http.MethodPut, "/api/v1/hosting", map[string]any{"policy": "any"}, http.StatusOK)
	hello := wasmtest.Says("Hello.").Bytes()
	hash := publishPackage(t, ada, "hello", "1.9.0", hello, nil)
	for _, v := range []string{"1.10.0", "2.0.0-rc.1"} {
		publishPackage(t, ada, "hello", v, hello, nil)
	}
	body := map[string]any{"name": "hello", "version": "1.10.0", "summary": "Other.", "licence": "MIT", "module": hash}
	ada.Must(http.MethodPost, "/api/v1/packages", body, http.StatusConflict)
	mine := map[string]any{"name": "hello", "version": "3.0.0", "summary": "Other.", "licence": "MIT",
		"module": upload(t, rob, "x.wasm", hello)}
	rob.Must(http.MethodPost, "/api/v1/packages", mine, http.StatusConflict)
	for field, wrong := range map[string]any{"name": "X!", "version": "1.0", "summary": "", "licence": "", "entry": "main",
		"grants": []map[string]string{{"name": "files", "why": "x"}}, "limits": map[string]any{"seconds": 3600},
		"languages": []string{"x y"}, "module": strings.Repeat("a", 64), "readme": strings.Repeat("x", 5000)} {
		bad := map[string]any{"name": "other", "version": "1.0.0", "summary": "Other.", "licence": "MIT", "module": hash}
		bad[field] = wrong
		if f := ada.Must(http.MethodPost, "/api/v1/packages", bad, http.StatusBadRequest).Fields(); f[field] == "" {
			t.Errorf("%s: %v", field, f)
		}
	}
	got := awaitPackage(t, rob, "hello", nil)
	if got.Version != "1.10.0" || got.Author != "ada" || len(got.Versions) != 3 ||
		got.Versions[0].Version != "2.0.0-rc.1" {
		t.Errorf("the newest is %+v", got)
	}
	found := func(c *apptest.Client, q string) int {
		var page struct{ Packages []sawPackage }
		c.Get(http.MethodGet, "/api/v1/packages?q="+q, nil, http.StatusOK, &page)
		return len(page.Packages)
	}
	if found(rob, "HELLO+people") != 1 || found(rob, "goodbye") != 0 {
		t.Error("it is not found by words")
	}
	sent := rob.Must(http.MethodGet, "/api/v1/packages/hello/1.9.0/module", nil, http.StatusOK).Body
	if !bytes.Equal([]byte(sent), hello) {
		t.Error("another module is sent")
	}
	ada.Must(http.MethodDelete, "/api/v1/hosting/modules/"+hash, nil, http.StatusConflict)
	rob.Must(http.MethodPost, "/api/v1/packages/hello/1.10.0/deprecate", map[string]string{"note": "Use 2."},
		http.StatusOK)
	bea := p.User(t, "bea").NewToken()
	bea.Must(http.MethodPost, "/api/v1/packages/hello/1.10.0/withdraw", map[string]string{}, http.StatusNotFound)
	for _, v := range []string{"1.9.0", "1.10.0", "2.0.0-rc.1"} {
		ada.Must(http.MethodPost, "/api/v1/packages/hello/"+v+"/withdraw", map[string]string{}, http.StatusOK)
	}
	ada.Must(http.MethodPost, "/api/v1/packages/hello/1.9.0/deprecate", map[string]string{}, http.StatusConflict)
	rob.Must(http.MethodGet, "/api/v1/packages/hello", nil, http.StatusNotFound)
	if got := awaitPackage(t, ada, "hello", nil); got.State != "withdrawn" {
		t.Errorf("for its author: %+v", got)
	}
	ada.Must(http.MethodPost, "/api/v1/packages/hello/1.9.0/kill", map[string]string{"note": "It lies."}, http.StatusOK)
	ada.Must(http.MethodDelete, "/api/v1/hosting/modules/"+hash, nil, http.StatusNoContent)
}

// The packages of an account that the operator removes are gone at once, as after an erasure by the person.
func TestPackages_OfARemovedAccount(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	eve, guest := p.Operator(t, "eve").NewToken(), p.User(t, "ada").NewToken()
	p.Operator(t, "boss")
	publishPackage(t, eve, "hello", "1.0.0", wasmtest.Says("Hello.").Bytes(), nil)
	guest.Must(http.MethodGet, "/api/v1/packages/hello", nil, http.StatusOK)
	c := p.OpenControl(t)
	defer c.Close()
	if _, err := c.RemoveUser(t.Context(), "eve", personal.KeepMessages); err != nil {
		t.Fatal(err)
	}
	guest.Must(http.MethodGet, "/api/v1/packages/hello", nil, http.StatusNotFound)
}
