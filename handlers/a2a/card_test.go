package a2a_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-jose/go-jose/v4"
	"github.com/gowebpki/jcs"

	"agentsite/agentruntime/remote"
	"agentsite/internal/a2a"
	"agentsite/internal/app"
	"agentsite/internal/hub"
	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

func TestCard_IsReadByBothVersions(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	for _, at := range []struct{ card, base, name string }{
		{"/agents/calc/.well-known/agent-card.json", "/agents/calc/a2a", "calc"},
		{"/.well-known/agent-card.json", "/a2a", "guide"},
		{"/agents/guide/.well-known/agent-card.json", "/agents/guide/a2a", "guide"},
	} {
		got := p.Guest(t).Must(http.MethodGet, at.card, nil, http.StatusOK)
		var c struct {
			Name, Description, Version string
			Interfaces                 []struct {
				URL     string
				Binding string `json:"protocolBinding"`
				Version string `json:"protocolVersion"`
			} `json:"supportedInterfaces"`
			URL             string
			ProtocolVersion string
			In              []string `json:"defaultInputModes"`
			Out             []string `json:"defaultOutputModes"`
			Skills          []struct {
				ID, Name, Description string
				Tags                  []string
			}
			Capabilities struct {
				Streaming bool
				Push      bool `json:"pushNotifications"`
				Extended  bool `json:"extendedAgentCard"`
			}
			Provider     struct{ Organization, URL string }
			Requirements []any `json:"securityRequirements"`
		}
		if err := json.Unmarshal([]byte(got.Body), &c); err != nil {
			t.Fatal(err)
		}
		if c.Name == "" || c.Description == "" || c.Version == "" || len(c.In) == 0 || len(c.Out) == 0 || len(c.Skills) == 0 || len(c.Skills[0].Tags) == 0 || c.Provider.Organization == "" {
			t.Errorf("%s: a required field is empty: %+v", at.card, c)
		}
		if !c.Capabilities.Streaming || !c.Capabilities.Extended || !c.Capabilities.Push || len(c.Requirements) != 0 {
			t.Errorf("%s: %+v %v", at.card, c.Capabilities, c.Requirements)
		}
		var have []string
		for _, i := range c.Interfaces {
			if i.URL != p.URL()+at.base {
				t.Errorf("%s names %s", at.card, i.URL)
			}
			have = append(have, i.Version+" "+i.Binding)
		}
		if strings.Join(have, ", ") != "1.0 JSONRPC, 1.0 HTTP+JSON, 0.3 JSONRPC" || c.URL != p.URL()+at.base || c.ProtocolVersion != "0.3.0" {
			t.Errorf("%s offers %v, and %s %s", at.card, have, c.ProtocolVersion, c.URL)
		}
	}
	// The portal's own reader of foreign cards takes it as another portal would.
	card, described, err := a2a.ReadCard(t.Context(), p.Guest(t).HTTP.Transport, p.URL()+"/agents/calc")
	if err != nil || card.Interface.Version != a2a.Version10 || card.NeedsAuth || !card.Streaming || len(described.Skills) == 0 {
		t.Errorf("%+v %+v %v", card, described, err)
	}
}

func TestCard_IsKeptByCaches(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	name := ada.Agent("public", model.Base(agenttest.Echo))
	path := "/agents/" + name + "/.well-known/agent-card.json"
	c := p.Guest(t)
	a := c.Must(http.MethodGet, path, nil, http.StatusOK)
	tag := a.Header.Get("ETag")
	if a.Header.Get("Cache-Control") != "public, max-age=300" || tag == "" || a.Header.Get("Last-Modified") == "" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", a.Header)
	}
	if c.Must(http.MethodHead, path, nil, http.StatusOK).Body != "" {
		t.Error("HEAD has a body")
	}
	same := c.Must(http.MethodGet, path, nil, http.StatusNotModified, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	if same.Body != "" {
		t.Errorf("%q", same.Body)
	}
	ada.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]string{"title": "Another"}, http.StatusOK)
	b := c.Must(http.MethodGet, path, nil, http.StatusOK, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	if b.Header.Get("ETag") == tag || !strings.Contains(b.Body, "Another") {
		t.Error("a changed card has the tag of the old one")
	}
}

func TestCard_FollowsWhoMaySeeAndAsk(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	private, unlisted := ada.Agent("private", model.Base(agenttest.Echo)), ada.Agent("unlisted", model.Base(agenttest.Echo))
	at := func(name string) string { return "/agents/" + name + "/.well-known/agent-card.json" }
	mine := ada.NewToken().Must(http.MethodGet, at(private), nil, http.StatusOK)
	if mine.Header.Get("Cache-Control") != "private, max-age=300" || !strings.Contains(mine.Body, "securityRequirements") {
		t.Errorf("%v %s", mine.Header, mine.Body)
	}
	hidden := bob.NewToken().Must(http.MethodGet, at(private), nil, http.StatusNotFound)
	absent := bob.NewToken().Must(http.MethodGet, at("nobody"), nil, http.StatusNotFound)
	if strings.ReplaceAll(hidden.Body, private, "nobody") != absent.Body {
		t.Errorf("hidden %s, absent %s", hidden.Body, absent.Body)
	}
	if open := p.Guest(t).Must(http.MethodGet, at(unlisted), nil, http.StatusOK); !strings.Contains(open.Body, "securityRequirements") {
		t.Error("visitors are not told that they need a credential for an unlisted agent")
	}
	if a := p.Bearer(t, "agsk_wrong").Must(http.MethodGet, at(unlisted), nil, http.StatusUnauthorized); a.Header.Get("WWW-Authenticate") == "" {
		t.Error("no challenge")
	}
	closed := apptest.Start(t, func(c *app.Config) { c.Guests = "off" })
	if card := closed.Guest(t).Must(http.MethodGet, at("calc"), nil, http.StatusOK); !strings.Contains(card.Body, `"securityRequirements"`) {
		t.Error("a portal without guests hides that callers need a credential")
	}
}

func TestCard_IsSignedByAKeyOfTheSite(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	c := p.Guest(t)
	path := "/agents/calc/.well-known/agent-card.json"
	body := c.Must(http.MethodGet, path, nil, http.StatusOK).Body
	if again := c.Must(http.MethodGet, path, nil, http.StatusOK).Body; again != body {
		t.Error("a card that did not change has other bytes")
	}
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(c.Must(http.MethodGet, "/.well-known/jwks.json", nil, http.StatusOK).Body), &keys); err != nil || len(keys.Keys) != 2 || !keys.Keys[0].IsPublic() || !keys.Keys[1].IsPublic() || keys.Keys[1].KeyID == keys.Keys[0].KeyID {
		t.Fatalf("%+v %v", keys, err)
	}
	var card map[string]any
	if err := json.Unmarshal([]byte(body), &card); err != nil {
		t.Fatal(err)
	}
	var signed struct {
		Signatures []struct{ Protected, Signature string }
	}
	if err := json.Unmarshal([]byte(body), &signed); err != nil || len(signed.Signatures) != 2 {
		t.Fatalf("%+v %v", signed, err)
	}
	// What a reader of 1.0 sees, written out by the protocol's own SDK, and the
	// card as it is served.
	delete(card, "signatures")
	whole, err := json.Marshal(card)
	if err != nil {
		t.Fatal(err)
	}
	var read sdk.AgentCard
	if err := json.Unmarshal([]byte(body), &read); err != nil {
		t.Fatal(err)
	}
	read.Signatures = nil
	plain, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	for i, form := range [][]byte{plain, whole} {
		payload, err := jcs.Transform(form)
		if err != nil {
			t.Fatal(err)
		}
		s := signed.Signatures[i]
		jws, err := jose.ParseDetached(s.Protected+".."+s.Signature, payload, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := jws.Verify(keys.Key(jws.Signatures[0].Protected.KeyID)[0]); err != nil {
			t.Errorf("signature %d: %v over\n%s", i, err, payload)
		}
	}
	// Another portal takes it as proof of who lists the agent.
	w := remote.NewWitness(c.HTTP.Transport)
	config, err := json.Marshal(hub.A2AConfig{CardURL: p.URL() + path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SignedCard(t.Context(), hub.Target{Kind: hub.A2A, Endpoint: p.URL() + calc, Config: config}); err != nil {
		t.Error(err)
	}
}

func TestVisitors_AreToldToSignInWhereThereAreNone(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t, func(c *app.Config) { c.Guests = "off" })
	a := p.Guest(t).Must(http.MethodPost, calc+"/message:send", say("one", "1+1", ""), http.StatusUnauthorized)
	if a.Header.Get("WWW-Authenticate") == "" || !strings.Contains(a.Body, "UNAUTHENTICATED") {
		t.Errorf("%v %s", a.Header, a.Body)
	}
}

// TestCard_PublicOneIsForEverybody: a client whose token has ended reads in the
// card what to do about it.
func TestCard_PublicOneIsForEverybody(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	hidden := ada.Agent("private", p.Base+"/v1")
	bad := p.Bearer(t, "ags_"+strings.Repeat("x", 43))
	for _, path := range []string{"/.well-known/agent-card.json", "/agents/calc/.well-known/agent-card.json"} {
		if got, want := bad.Must(http.MethodGet, path, nil, http.StatusOK).Body, p.Guest(t).Must(http.MethodGet, path, nil, http.StatusOK).Body; got != want {
			t.Errorf("%s is another card: %s", path, got)
		}
	}
	bad.Must(http.MethodGet, "/agents/"+hidden+"/.well-known/agent-card.json", nil, http.StatusUnauthorized)
	bad.Must(http.MethodGet, "/agents/nobody-at-all/.well-known/agent-card.json", nil, http.StatusUnauthorized)
}
