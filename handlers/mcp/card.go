package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"agentsite/handlers/ard"
	"agentsite/handlers/mcp/endpoint"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// cardSuffix is appended to a server's address to get its card (SEP-2127).
const cardSuffix = "/server-card"

const (
	// CardType is the media type of a server card.
	CardType   = "application/mcp-server-card+json"
	cardSchema = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
	// maxCardText bounds each text of a card in runes.
	maxCardText = 100
	// maxCatalog bounds the agents in the catalog; clients find others by search.
	maxCatalog = 100
	// cardAge is how long clients may cache cards, in seconds; an owner's change is visible after that.
	cardAge = 300
)

// serverCard describes how clients connect to a server before they have connected.
type serverCard struct {
	Schema      string          `json:"$schema"`
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	Website     string          `json:"websiteUrl,omitempty"`
	Icons       []endpoint.Icon `json:"icons,omitempty"`
	Remotes     []remote        `json:"remotes"`
}

type remote struct {
	Type     string        `json:"type"`
	URL      string        `json:"url"`
	Headers  []headerInput `json:"headers,omitempty"`
	Versions []string      `json:"supportedProtocolVersions"`
}

// headerInput describes an HTTP header that the client has to send, so that it can ask its user for the
// value.
type headerInput struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"isRequired"`
	Secret      bool   `json:"isSecret"`
	Value       string `json:"value"`
}

func (d *Handler) cardAt(url, name, version, title, description, page string, open bool) serverCard {
	return serverCard{Schema: cardSchema, Name: d.serverName(name), Version: version,
		Title:       a2a.Line(title, maxCardText),
		Description: cmp.Or(a2a.Line(description, maxCardText), title), Website: page,
		Remotes: []remote{{"streamable-http", url,
			[]headerInput{{"Authorization", "Bearer and an API token of this portal", !open, true, ""}},
			endpoint.Versions()}}}
}

func (d *Handler) portalCard(w http.ResponseWriter, r *http.Request) {
	c := d.cardAt(d.cfg.URL+portalPath, "agentsite", d.cfg.Version, d.cfg.Live.NameOr(d.cfg.Name),
		"Find the agents of "+d.cfg.Live.NameOr(d.cfg.Name)+" and give them work.", d.cfg.URL,
		d.cfg.Live.AllowsGuests())
	d.sendCard(w, r, CardType, c)
}

// agentCard answers with the server card of an agent. Without a credential only public agents have one.
func (d *Handler) agentCard(w http.ResponseWriter, r *http.Request) {
	actor, err := d.cfg.Callers.Authenticate(r)
	var a hub.Agent
	if err == nil {
		a, err = d.cfg.Hub.Get(r.Context(), actor, request.PathParam(r, "name"))
	}
	if err != nil {
		d.sendError(w, r, err)
		return
	}
	if !a.Listable() {
		w.Header().Set("Cache-Control", "private, max-age="+strconv.Itoa(cardAge))
	}
	d.sendCard(w, r, CardType, d.cardOf(a))
}

func (d *Handler) cardOf(a hub.Agent) serverCard {
	a = a2a.DescribeRelay(a, d.portalHost())
	c := d.cardAt(d.agentURL(a.Handle()), a.Handle(), strconv.Itoa(max(a.Version, 1)), cmp.Or(a.Title, a.Name),
		a.Description, d.cfg.URL+"/agents/"+a.Handle(), d.isOpen(a))
	if a.Icon != "" {
		c.Icons = []endpoint.Icon{{Src: d.cfg.URL + "/agents/" + a.Name + "/icon"}}
	}
	return c
}

// Card returns the server card of an agent, for the catalogs of other endpoints. The caller checks that
// the agent may be seen.
func (d *Handler) Card(a hub.Agent) []byte { return encodeCard(d.cardOf(a)) }

func encodeCard(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // structs of strings always encode
		panic(err)
	}
	return b
}

// serveCatalog answers with an AI Catalog of this portal's servers: the portal's own, then those of
// public agents.
func (d *Handler) serveCatalog(w http.ResponseWriter, r *http.Request) {
	page, err := d.cfg.Hub.Search(r.Context(), ident.Actor{Kind: ident.Guest, Addr: request.ClientAddr(r)},
		hub.Query{Scope: hub.ScopePortal, Sort: hub.SortName, Limit: maxCatalog})
	if err != nil {
		d.sendError(w, r, err)
		return
	}
	type entry struct {
		Identifier string `json:"identifier"`
		Name       string `json:"displayName"`
		Type       string `json:"type"`
		URL        string `json:"url"`
	}
	u, err := url.Parse(d.cfg.URL)
	if err != nil { // the portal's URL was validated at the start
		panic(err)
	}
	urn := "urn:air:" + ard.Domain(u.Hostname()) + ":mcp:"
	list := []entry{{urn + "agentsite", d.cfg.Live.NameOr(d.cfg.Name), CardType, d.cfg.URL + portalPath + cardSuffix}}
	for _, f := range page.Results {
		if f.Agent.Portal == "" {
			list = append(list, entry{urn + f.Agent.Name, cmp.Or(f.Agent.Title, f.Agent.Name), CardType,
				d.agentURL(f.Agent.Name) + cardSuffix})
		}
	}
	d.sendCard(w, r, "application/ai-catalog+json", map[string]any{"specVersion": "1.0", "entries": list})
}

// sendCard answers with a public JSON document that scripts of other sites may read (CORS).
func (d *Handler) sendCard(w http.ResponseWriter, r *http.Request, mediaType string, v any) {
	b := encodeCard(v)
	sum := sha256.Sum256(b)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET")
	h.Set("Access-Control-Allow-Headers", "Content-Type, If-None-Match")
	h.Set("Access-Control-Expose-Headers", "ETag")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Vary", "Authorization")
	h.Set("ETag", tag)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "public, max-age="+strconv.Itoa(cardAge))
	}
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(http.StatusOK)
	w.Write(b)
}

// sendError answers with an error of a route outside of MCP, in the API's form.
func (d *Handler) sendError(w http.ResponseWriter, r *http.Request, err error) {
	f, code := respond.PrepareError(w, r, d.cfg.Log, err)
	if f.Kind == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="agentsite"`)
	}
	if err := respond.WriteJSON(w, code, map[string]any{"error": map[string]string{"kind": string(f.Kind),
		"message": f.Safe}}); err != nil {
		d.cfg.Log.Error("encode an error", "error", err)
	}
}
