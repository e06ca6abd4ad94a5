package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

var anybodyHere = ident.Actor{Kind: ident.Guest}

// openNet opens a portal of the network of recordtest, which serves no port.
func openNet(t *testing.T) *Portal {
	t.Helper()
	cfg := Defaults()
	cfg.Listen, cfg.Data, cfg.Network, cfg.CheapHashes = "127.0.0.1:0", t.TempDir(), recordtest.Network, true
	p, err := Open(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// far puts a portal with agents of these names into what p knows, as a sync
// does.
func (p *Portal) far(t *testing.T, name string, proved bool, agents ...*record.Agent) *recordtest.Portal {
	t.Helper()
	f := recordtest.NewPortal(name)
	f.Now = clock.Now().UnixMilli()
	f.Epoch = f.Now - recordtest.Hour
	admit := func(r *record.Record) *record.Record {
		t.Helper()
		if _, _, err := p.node.Gate.Admit(t.Context(), r.Wire, clock.Now()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	card := f.Card()
	card.Origin, card.Name = "https://"+name+".example", "The "+name
	admit(f.Sign(t, card))
	var tree record.Tree
	var list []*record.Record
	for _, a := range agents {
		a.Header = f.Header(a.Expires)
		r := admit(f.Sign(t, a))
		tree.Set(record.AgentKey(a.AgentID()), r.Hash)
		list = append(list, r)
	}
	head := f.Head(&tree)
	sum := admit(f.Sign(t, head)).Hash
	// All that the head covers is here.
	if _, ok, err := p.replica.Complete(t.Context(), f.ID, record.Version{}, head.Version(), federation.Whole{Version: head.Version(), Hash: sum}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	p.node.Peers.Learned(card, proved)
	p.node.Peers.Seen(f.ID, time.Millisecond)
	p.node.Peers.Synced(f.ID, federation.HeadRow{Portal: f.ID, Version: head.Version(), Issued: head.Issued, Expires: head.Expires, Count: head.Count}, len(list), false, time.Time{})
	p.node.Catalog.Put(f.ID, list)
	p.node.Catalog.Reconcile(t.Context())
	return f
}

func tides() *record.Agent {
	return &record.Agent{Header: record.Header{Expires: recordtest.Day}, ID: "01tide", Name: "tides", Kind: "a2a", Title: "Tide tables", Description: "Says when the water is high, for 3,000 harbours.",
		Owner: "mira", Skills: []record.Skill{{ID: "when", Name: "Look up a tide", Description: "High and low water of a day.", Tags: []string{"sea", "tides"}, Examples: []string{"When is high water in Husum tomorrow?"}}},
		Languages: []string{"de", "en"}, Caps: []string{"sea", "tides"}, Proof: &record.AgentProof{Way: "hosted"},
		Endpoints: []record.Endpoint{{URL: "https://harbour.example/agents/tides/a2a", Protocol: "a2a"}, {URL: "https://harbour.example/agents/tides/mcp", Protocol: "mcp"}}}
}

func TestElsewhere_IsShownWithItsSource(t *testing.T) {
	t.Parallel()
	p := openNet(t)
	if err := p.hub.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := p.far(t, "harbour", true, tides())
	handler := p.newRouter()
	ask := func(method, path, body string, want int) string {
		t.Helper()
		r := httptest.NewRequest(method, p.URL()+path, strings.NewReader(body))
		r.Host = p.url.Host
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Fatalf("%s %s: %d %.500s", method, path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	contains := func(text string, all ...string) {
		t.Helper()
		for _, s := range all {
			if !strings.Contains(text, s) {
				t.Errorf("%q is missing", s)
			}
		}
	}
	const handle = "tides@harbour.example"
	var found struct {
		Results []struct {
			Agent  struct{ Handle, Portal string }
			Source struct {
				Portal, URL, ID, Record string
				Verified                bool
			}
			Verified bool
		}
		Portals federation.Coverage
	}
	if err := json.Unmarshal([]byte(ask("GET", "/api/v1/search?q=high+water", "", 200)), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Results) != 1 || found.Results[0].Agent.Handle != handle || !found.Results[0].Verified || found.Results[0].Source.URL != "https://harbour.example" ||
		found.Results[0].Source.ID != string(f.ID) || found.Results[0].Source.Record == "" || found.Portals.Known != 2 || found.Portals.Answered != 2 {
		t.Errorf("%+v", found)
	}
	if text := ask("GET", "/api/v1/search?q=high+water&scope=portal", "", 200); strings.Contains(text, handle) {
		t.Error("this portal's own are asked for:", text)
	}
	contains(ask("GET", "/api/v1/search?portal=harbour.example&signed=true", "", 200), handle)
	contains(ask("GET", "/agents?q=high+water", "", 200), handle, "harbour.example", "2 of 2 portals")
	contains(ask("GET", "/agents/"+handle, "", 200), ">Origin<", "harbour.example</bdi> signed this", string(f.ID), found.Results[0].Source.Record,
		"https://harbour.example/agents/tides", "Signed data", "mira", "https://harbour.example/agents/tides/mcp", "Both portals", "Its portal says that it runs it itself")
	contains(ask("GET", "/api/v1/agents/"+handle, "", 200), `"source":{"portal":"harbour.example"`)

	var e struct {
		Card, Head, Record, Proof json.RawMessage
		Hash                      string
	}
	if err := json.Unmarshal([]byte(ask("GET", "/api/v1/agents/"+handle+"/record", "", 200)), &e); err != nil {
		t.Fatal(err)
	}
	gate, err := record.NewGate(recordtest.Network, new(recordtest.Memory))
	if err != nil {
		t.Fatal(err)
	}
	var records []*record.Record
	for _, wire := range []json.RawMessage{e.Card, e.Head, e.Record} {
		r, _, err := gate.Admit(t.Context(), wire, clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	proof, err := record.ParseProof(e.Proof)
	if err != nil || !records[1].Body.(*record.Head).Covers(records[2], proof) || e.Hash != found.Results[0].Source.Record {
		t.Error("what was downloaded shows nothing", err)
	}

	// What is another portal's is neither published nor changed here.
	for _, path := range []string{"/ard/agents", "/.well-known/ai-catalog.json", "/v0.1/servers", "/.well-known/mcp/catalog.json"} {
		if text := ask("GET", path, "", 200); strings.Contains(text, "tides") {
			t.Errorf("%s publishes it", path)
		}
	}
	ask("GET", "/api/v1/agents/"+handle+"/versions", "", http.StatusNotFound)
	ask("GET", "/agents/"+handle+"/embed", "", http.StatusNotFound)
	ask("GET", "/agents/nobody@harbour.example", "", http.StatusNotFound)
	ask("GET", "/agents/tides", "", http.StatusNotFound)

	p.node.Catalog.Remove(f.ID, []string{string(f.ID) + "/01tide"})
	ask("GET", "/agents/"+handle, "", http.StatusNotFound)
}

func TestElsewhere_NotProvedIsSaid(t *testing.T) {
	t.Parallel()
	p := openNet(t)
	p.far(t, "harbour", false, tides())
	a, err := p.hub.Get(t.Context(), anybodyHere, "tides@harbour.example")
	if err != nil || a.Signed() {
		t.Fatalf("%+v, %v", a, err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", p.URL()+"/agents/tides@harbour.example", nil)
	r.Host = p.url.Host
	p.newRouter().ServeHTTP(w, r)
	if w.Code != 200 || !strings.Contains(w.Body.String(), "is not verified") || strings.Contains(w.Body.String(), "badge-verified") {
		t.Errorf("%d: it looks proved", w.Code)
	}
	page, err := p.hub.Search(t.Context(), anybodyHere, hub.Query{Signed: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range page.Results {
		if res.Agent.Elsewhere() {
			t.Errorf("%s counts as signed", res.Agent.Handle())
		}
	}
}

// TestElsewhere_ImportsCountAtOnce has an operator decide anew what is taken in:
// what is held and shown already follows, both ways.
func TestElsewhere_ImportsCountAtOnce(t *testing.T) {
	t.Parallel()
	p := openNet(t)
	p.far(t, "harbour", true, tides())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	root := ident.Actor{Kind: ident.Operator, ID: "op", Name: "ada"}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for _, skip := range [][]string{{"tides"}, nil} {
		pol, err := p.node.Peers.Policy(ctx, root)
		if err != nil {
			t.Fatal(err)
		}
		pol.Import.Except = skip
		if _, err := p.node.Peers.SetPolicy(ctx, root, pol, "a test"); err != nil {
			t.Fatal(err)
		}
		if skip != nil { // what is decided while the portal starts counts as well
			go func() { done <- p.node.WatchPolicy(ctx) }()
		}
		for late := time.After(2 * time.Minute); ; {
			p.node.Catalog.Reconcile(ctx)
			_, err := p.hub.Get(ctx, anybodyHere, "tides@harbour.example")
			if (err == nil) == (skip == nil) {
				break
			}
			select {
			case <-look.C:
			case <-late:
				t.Fatalf("without tags %v: %v", skip, err)
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
