package app_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"agentsite/internal/app"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/apptest"
)

// shownDHT is the section about the DHT on the operator's page.
type shownDHT struct {
	text, typed, wrong string // wrong: what is said beside the field
	form               bool
	links              map[string]string // of portals, by address
}

func dhtSection(t *testing.T, page string) shownDHT {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	has := func(n *html.Node, key string) (value string) {
		for _, a := range n.Attr {
			if a.Key == key {
				value = a.Val
			}
		}
		return value
	}
	text := func(n *html.Node) string {
		var b strings.Builder
		for c := range n.Descendants() {
			if c.Type == html.TextNode {
				b.WriteString(c.Data + " ")
			}
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	for n := range doc.Descendants() {
		if n.Data != "section" || has(n, "id") != "dht" {
			continue
		}
		s := shownDHT{text: text(n), links: map[string]string{}}
		for c := range n.Descendants() {
			switch {
			case c.Data == "form":
				s.form = has(c, "method") == "get"
			case c.Data == "input" && has(c, "name") == "lookup":
				s.typed = has(c, "value")
			case has(c, "id") == "dht-lookup-error":
				s.wrong = text(c)
			case c.Data == "a":
				s.links[has(c, "href")] = text(c)
			}
		}
		return s
	}
	t.Fatalf("no section about the DHT in %.300s", page)
	return shownDHT{}
}

// TestAdminPeers_LooksIntoTheDHT has an operator see how a portal stands in the
// DHT, and look for something there.
func TestAdminPeers_LooksIntoTheDHT(t *testing.T) {
	t.Parallel()
	a, b := apptest.Start(t), apptest.Start(t)
	op := a.Operator(t, "olga")
	if err := b.Greet(t.Context(), a.URL()); err != nil {
		t.Fatal(err)
	}
	other := record.PortalID(b.NetworkID())
	lookups(t, op, string(other), func(a federation.DHTAnswer) bool { return len(a.Portals) == 1 })

	look := func(what string, want int) shownDHT {
		t.Helper()
		return dhtSection(t, op.Must(http.MethodGet, "/admin/peers?lookup="+url.QueryEscape(what), nil, want).Body)
	}
	s := dhtSection(t, op.Must(http.MethodGet, "/admin/peers", nil, http.StatusOK).Body)
	if !s.form || s.typed != "" || s.wrong != "" || len(s.links) > 0 || !strings.Contains(s.text, "1 portal is in its table") {
		t.Errorf("%+v", s)
	}
	if s := look(string(other), http.StatusOK); s.typed != string(other) || s.wrong != "" || s.links["/admin/peers/"+string(other)] == "" || !strings.Contains(s.text, "signed") || !strings.Contains(s.text, "request") {
		t.Errorf("%+v", s)
	}
	// Itself is among those that have what every portal has.
	lookups(t, op, a.NetworkID(), func(a federation.DHTAnswer) bool { return len(a.Portals) == 1 })
	if s := look(a.NetworkID(), http.StatusOK); s.links["/about"] == "" {
		t.Errorf("%+v", s)
	}
	if s := look("no-such-thing", http.StatusOK); !strings.Contains(s.text, "No portal has a signed entry for this capability.") || s.wrong != "" || len(s.links) > 0 {
		t.Errorf("%+v", s)
	}
	for what, code := range map[string]int{" ": http.StatusBadRequest, strings.Repeat("x", 201): http.StatusBadRequest, `<b>@nowhere.example`: http.StatusNotFound} {
		if s := look(what, code); s.typed != what || s.wrong == "" || !strings.Contains(s.text, "in its table") {
			t.Errorf("%q: %+v", what, s)
		}
	}

	alone := apptest.Start(t, func(c *app.Config) { c.Network = "off" }).Operator(t, "otto")
	s = dhtSection(t, alone.Must(http.MethodGet, "/admin/peers?lookup=ferries", nil, http.StatusOK).Body)
	if s.form || !strings.Contains(s.text, "takes part in no address book") {
		t.Errorf("%+v", s)
	}
}

// TestAdminPeers_FollowsAnAgent has an operator ask why an agent is not found at
// another portal: where it is, where that portal is shut out, and of none.
func TestAdminPeers_FollowsAnAgent(t *testing.T) {
	t.Parallel()
	a, b := apptest.Start(t), apptest.Start(t)
	op := a.Operator(t, "olga")
	op.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "ferry", "description": "Knows every ferry.", "kind": "link", "visibility": "public"}, http.StatusCreated)
	if err := b.Greet(t.Context(), a.URL()); err != nil {
		t.Fatal(err)
	}
	lookups(t, op, b.NetworkID(), func(a federation.DHTAnswer) bool { return len(a.Portals) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := b.Until(ctx, a.NetworkID(), func(p federation.Peer) bool { return p.Listed == 1 }); err != nil {
		t.Fatal(err)
	}
	steps := func(agent, at string, want int) string {
		t.Helper()
		page := op.Must(http.MethodGet, "/admin/peers?"+url.Values{"agent": {agent}, "at": {at}}.Encode(), nil, want).Body
		doc, err := html.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			for _, at := range n.Attr {
				if at.Key == "id" && at.Val == "trace" {
					var b strings.Builder
					for c := range n.Descendants() {
						if c.Type == html.TextNode {
							b.WriteString(c.Data + " ")
						}
					}
					return strings.Join(strings.Fields(b.String()), " ")
				}
			}
		}
		t.Fatal("the page has no such section")
		return ""
	}
	has := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not in: %s", w, text)
			}
		}
	}
	has(steps("guide", b.URL(), http.StatusOK), "ok: The agent guide is registered here", "fault: It is not published: It is part of this portal.")
	has(steps("ferry", b.URL(), http.StatusOK), "ok: The agent ferry is registered here", "ok: It is published")
	has(steps("@ferry", "", http.StatusOK), "Name another portal")
	has(steps("nobody", b.Host, http.StatusOK), "fault: There is no agent \"nobody\"", "Check the spelling")
	has(steps("ferry", "elsewhere.example", http.StatusOK), `fault: The portal "elsewhere.example" is not known here`, "agentsite peers add https://elsewhere.example")
	has(steps(" ", b.Host, http.StatusBadRequest), "Write the name of an agent of this portal.")
	op.Must(http.MethodPatch, "/api/v1/peers/"+b.NetworkID(), map[string]any{"policy": "deny", "note": "spam"}, http.StatusOK)
	has(steps("ferry", b.Host, http.StatusOK), "fault: "+b.Host+" is denied here")
	// Its agents are not looked for; only an operator is told that it is not a
	// matter of spelling.
	has(op.Must(http.MethodGet, "/agents/guide@"+b.Host, nil, http.StatusNotFound).Body, "Its portal is not let in here: An operator of this portal shut it out.")
	if page := a.User(t, "ada").Must(http.MethodGet, "/agents/guide@"+b.Host, nil, http.StatusNotFound).Body; strings.Contains(page, "let in") || !strings.Contains(page, "is not known here") {
		t.Error("a person is told too that it is shut out")
	}
}

// TestAdminPeers_SaysWhoRefusesThePortal has another portal shut this one out,
// and let it in again: its operator reads it in the list, on the portal's page
// and in the API.
func TestAdminPeers_SaysWhoRefusesThePortal(t *testing.T) {
	t.Parallel()
	a, b := apptest.Start(t), apptest.Start(t)
	op := a.Operator(t, "olga")
	if err := a.Greet(t.Context(), b.URL()); err != nil {
		t.Fatal(err)
	}
	if err := b.Rule(t.Context(), a.NetworkID(), federation.Deny); err != nil {
		t.Fatal(err)
	}
	if err := a.Greet(t.Context(), b.URL()); err == nil {
		t.Fatal("it is let in")
	}
	type row struct {
		Refuses string `json:"refuses"`
		Why     string `json:"refuses_why"`
	}
	said := func() (r row) {
		op.Get(http.MethodGet, "/api/v1/peers/"+b.NetworkID(), nil, http.StatusOK, &r)
		return r
	}
	// The answer to a request that was sent before the denial may arrive after it, at any time, and
	// the portal learns of the denial from its next request.
	shown := func(ok func() bool) bool {
		for range 100 {
			if ok() {
				return true
			}
			if err := a.Greet(t.Context(), b.URL()); err == nil {
				t.Fatal("it is let in")
			}
		}
		return false
	}
	if !shown(func() bool {
		r := said()
		return r.Refuses == "denied" && strings.Contains(r.Why, "An operator of this portal shut it out.")
	}) {
		t.Errorf("%+v", said())
	}
	pages := []string{"/admin/peers", "/admin/peers/" + b.NetworkID()}
	for _, path := range pages {
		if !shown(func() bool {
			page := op.Must(http.MethodGet, path, nil, http.StatusOK).Body
			return strings.Contains(page, "shuts this portal out: “An operator of this portal shut it out.”")
		}) {
			t.Errorf("%s does not say it", path)
		}
	}
	if err := b.Rule(t.Context(), a.NetworkID(), ""); err != nil {
		t.Fatal(err)
	}
	if err := a.Greet(t.Context(), b.URL()); err != nil {
		t.Fatal(err)
	}
	if r := said(); r != (row{}) {
		t.Errorf("it is let in again: %+v", r)
	}
	for _, path := range pages {
		if page := op.Must(http.MethodGet, path, nil, http.StatusOK).Body; strings.Contains(page, "shuts this portal out") {
			t.Errorf("%s still says it", path)
		}
	}
}
