package ard_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/gowebpki/jcs"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// holds reports why the signature of an object does not hold, as a consumer
// finds out who only knows the address of the portal.
func holds(t *testing.T, c *apptest.Client, object map[string]any) error {
	t.Helper()
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(c.Must(http.MethodGet, "/.well-known/jwks.json", nil, http.StatusOK).Body), &keys); err != nil {
		t.Fatal(err)
	}
	signature, _ := object["signature"].(string)
	rest := make(map[string]any)
	for k, v := range object {
		if k != "signature" {
			rest[k] = v
		}
	}
	b, err := json.Marshal(rest)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := jcs.Transform(b)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := jose.ParseDetached(signature, payload, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return err
	}
	_, err = jws.Verify(keys.Key(jws.Signatures[0].Protected.KeyID)[0])
	return err
}

func object(t *testing.T, a apptest.Answer) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), &out); err != nil {
		t.Fatalf("%v: %.300s", err, a.Body)
	}
	return out
}

func TestTrust_ManifestsHold(t *testing.T) {
	t.Parallel()
	model, tools := agenttest.NewOpenAIServer(t), agenttest.NewMCPServer(t, true)
	p := apptest.Start(t)
	ada, c := p.User(t, "ada"), p.Guest(t)
	name := ada.Agent("public", model.Base(agenttest.Echo))
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "tools", "description": "Tools that say things again.", "kind": "mcp", "endpoint": tools.Endpoint(agenttest.Echo), "visibility": "public"}, http.StatusCreated)
	ada.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"title": "Echo", "limits": map[string]any{"callers": "accounts", "per_minute": 9}, "languages": []string{"de"}}, http.StatusOK)

	seen := make(map[string]string) // the signature of each entry
	check := func(where string, list any) (signed int) {
		t.Helper()
		for _, e := range list.([]any) {
			e := e.(map[string]any)
			id := e["identifier"].(string)
			m, ok := e["trustManifest"].(map[string]any)
			if ok != (e["type"] == "application/a2a-agent-card+json" || e["type"] == "application/mcp-server-card+json") {
				t.Errorf("%s: %s, a %s, has the manifest %v", where, id, e["type"], m)
			}
			if !ok {
				continue
			}
			signed++
			if err := holds(t, c, m); err != nil {
				t.Errorf("%s: %s: %v", where, id, err)
			}
			subject := m["subject"].(map[string]any)
			path, _ := strings.CutPrefix(e["url"].(string), p.URL())
			sum := sha256.Sum256([]byte(c.Must(http.MethodGet, path, nil, http.StatusOK).Body))
			if subject["digest"] != "sha256:"+hex.EncodeToString(sum[:]) {
				t.Errorf("%s: %s is of another card", where, id)
			}
			if m["identity"] != id || subject["identifier"] != id || subject["url"] != e["url"] || subject["type"] != e["type"] || subject["version"] != e["version"] {
				t.Errorf("%s: %v does not fit %v", where, m, e)
			}
			if _, err := time.Parse(time.RFC3339, m["issuedAt"].(string)); err != nil {
				t.Error(err)
			}
			if first := seen[id]; first != "" && first != m["signature"] {
				t.Errorf("%s: %s is signed anew", where, id)
			}
			seen[id] = m["signature"].(string)
			m["identity"] = id + "x"
			if holds(t, c, m) == nil {
				t.Errorf("%s: a forged manifest of %s holds", where, id)
			}
		}
		return signed
	}
	ai := object(t, c.Must(http.MethodGet, "/.well-known/ai-catalog.json", nil, http.StatusOK))
	if err := holds(t, c, ai); err != nil {
		t.Error("the catalog:", err)
	}
	if n := check("ai catalog", ai["entries"]); n != 8 {
		t.Errorf("%d signed entries", n)
	}
	if holds(t, c, ai) == nil {
		t.Error("a forged catalog holds")
	}
	check("catalog", object(t, c.Must(http.MethodGet, "/.well-known/ard.json", nil, http.StatusOK))["entries"])
	check("list", object(t, c.Must(http.MethodGet, "/ard/agents", nil, http.StatusOK))["items"])
	check("search", object(t, c.Must(http.MethodPost, "/ard/search", map[string]any{"query": map[string]any{"text": "say calculate echo answer"}}, http.StatusOK))["results"])
	for id := range seen {
		check("retrieve", []any{object(t, c.Must(http.MethodGet, at(id), nil, http.StatusOK))})
	}
	// What changes is signed anew.
	id := "urn:air:127.0.0.1:agents:" + name
	before := seen[id]
	ada.Must(http.MethodPatch, "/api/v1/agents/"+name, map[string]any{"title": "Another"}, http.StatusOK)
	delete(seen, id)
	check("changed", []any{object(t, c.Must(http.MethodGet, at(id), nil, http.StatusOK))})
	if seen[id] == before {
		t.Error("a changed card has the old manifest")
	}
}

// TestEntries_OneForEachProtocol: an agent has an A2A card and an MCP server
// card, each under its own identifier.
func TestEntries_OneForEachProtocol(t *testing.T) {
	t.Parallel()
	tools := agenttest.NewMCPServer(t, true)
	p := apptest.Start(t)
	ada, c := p.User(t, "ada"), p.Guest(t)
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "tools", "description": "Tools that say things again.", "kind": "mcp", "endpoint": tools.Endpoint(agenttest.Echo), "visibility": "public"}, http.StatusCreated)
	const servers, cards = "application/mcp-server-card+json", "application/a2a-agent-card+json"
	search := func(filter map[string]any) map[string]string {
		out := make(map[string]string)
		for _, e := range readBody(t, c.Do(http.MethodPost, "/ard/search", map[string]any{"query": map[string]any{"text": "say again calculate", "filter": filter}}), http.StatusOK).Results {
			out[e.Identifier] = e.Type
		}
		return out
	}
	all := search(nil)
	if all["urn:air:127.0.0.1:mcp:tools"] != servers || all["urn:air:127.0.0.1:agents:calc"] != cards || all["urn:air:127.0.0.1:agents:tools"] != "" {
		t.Errorf("%v", all)
	}
	if got := search(map[string]any{"type": []string{servers}}); got["urn:air:127.0.0.1:mcp:tools"] != servers || got["urn:air:127.0.0.1:mcp:calc"] != servers || len(got) != len(all) {
		t.Errorf("%v", got)
	}
	if got := search(map[string]any{"type": []string{cards}}); got["urn:air:127.0.0.1:agents:tools"] != cards || len(got) != len(all) {
		t.Errorf("%v", got)
	}
	if got := search(map[string]any{"trustManifest.attestations.type": []string{"SOC2-Type2"}}); len(got) != 0 {
		t.Errorf("attested: %v", got)
	}
	e := object(t, c.Must(http.MethodGet, at("urn:air:127.0.0.1:mcp:tools"), nil, http.StatusOK))
	if e["url"] != p.URL()+"/agents/tools/mcp/server-card" || e["type"] != servers {
		t.Errorf("%v", e)
	}
	c.Must(http.MethodGet, at("urn:air:127.0.0.1:mcp:nobody"), nil, http.StatusNotFound)
	c.Must(http.MethodGet, at("urn:air:127.0.0.1:registry:calc"), nil, http.StatusNotFound)
	facets := object(t, c.Must(http.MethodPost, "/ard/explore", map[string]any{"resultType": map[string]any{"facets": []any{map[string]string{"field": "type"}, map[string]string{"field": "trustManifest.attestations.type"}}}}, http.StatusOK))["facets"].(map[string]any)
	if n := len(facets["type"].(map[string]any)["buckets"].([]any)); n != 2 {
		t.Errorf("%v", facets)
	}
	if n := len(facets["trustManifest.attestations.type"].(map[string]any)["buckets"].([]any)); n != 0 {
		t.Errorf("%v", facets)
	}
}
