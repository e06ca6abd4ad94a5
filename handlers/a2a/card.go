package a2a

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"agentsite/handlers/request"
	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/ident/httpsig"
)

// CardType is the media type of A2A agent cards in catalogs. Cards themselves are served as plain JSON,
// which every client accepts.
const CardType = "application/a2a-agent-card+json"

// cardAge is the time for which clients may cache a card, in seconds: an owner's change is visible
// within minutes.
const cardAge = "300"

// serveCard answers with an agent's card if the caller may see the agent's page. It never
// redirects: clients take the address of a card for the address of its agent.
func (d *Handler) serveCard(w http.ResponseWriter, r *http.Request) {
	a, err := d.cardAgent(r)
	var b []byte
	if err == nil {
		b, err = d.signCard(d.baseURL(r, a.Handle()), a)
	}
	if err != nil {
		f := d.failureOf(r, err)
		setErrorHeaders(w.Header(), f)
		sendJSON(w, f.HTTP(), "application/json", f.REST())
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Vary", "Authorization")
	h.Set("Cache-Control", "public, max-age="+cardAge)
	if a.Visibility != hub.Public || a.Status.State == hub.StatusDraft {
		h.Set("Cache-Control", "private, max-age="+cardAge)
	}
	sum := sha256.Sum256(b)
	h.Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:16])+`"`)
	changed := a.UpdatedAt
	if changed.Before(d.cfg.Started) { // a new version of the software may write the card differently
		changed = d.cfg.Started
	}
	http.ServeContent(w, r, "", changed.Truncate(time.Second), bytes.NewReader(b))
}

// cardAgent returns the agent of the requested card. A public card is served even with an expired
// credential, because the card says where to get a new one.
func (d *Handler) cardAgent(r *http.Request) (hub.Agent, error) {
	actor, err := d.cfg.Callers.Authenticate(r)
	if fault.Is(err, fault.Unauthenticated) {
		visitor := ident.Actor{Kind: ident.Guest, Addr: request.ClientAddr(r)}
		if a, verr := d.cfg.Hub.Get(r.Context(), visitor, agentName(r)); verr == nil && a.Visibility == hub.Public {
			return a, nil
		}
	}
	if err != nil {
		return hub.Agent{}, err
	}
	return d.cfg.Hub.Get(r.Context(), actor, agentName(r))
}

// signCard returns an agent's card as signed JSON. base is the URL that the card names; signatures are
// cached by content.
func (d *Handler) signCard(base string, a hub.Agent) ([]byte, error) {
	return d.cards.signCached(d.cfg.Signer, d.cardOf(base, a))
}

// Card returns an agent's signed card with the agent's own base URL, for the catalogs of other endpoints.
// The caller checks that the card may be seen.
func (d *Handler) Card(a hub.Agent) ([]byte, error) { return d.signCard(d.agentBase(a.Handle()), a) }

// cardOf builds the unsigned card of an agent. base is the URL at which the agent is called.
func (d *Handler) cardOf(base string, a hub.Agent) a2a.AgentCard {
	f := a2a.Face{Base: base, Provider: d.cfg.Live.NameOr(d.cfg.Name), Home: d.cfg.URL,
		Page:   d.cfg.URL + "/agents/" + url.PathEscape(a.Handle()),
		Only10: !a.Elsewhere() && a.Kind == hub.Builtin && a.Name == d.cfg.Only10, Open: d.cfg.Live.AllowsGuests() &&
			a.Visibility == hub.Public && a.Limits.Callers == ""}
	if a.Icon != "" {
		f.Icon = f.Page + "/icon"
	}
	if a.Elsewhere() {
		f.Provider, f.Home = a.Portal, cmp.Or(d.cfg.Hub.Source(a).URL, d.cfg.URL)
	}
	return a2a.MakeCard(a2a.DescribeRelay(a, d.cfg.Host), f)
}

// extendedCard returns the card for callers with an account: it has the portal's data about the
// agent as an extension.
func (d *Handler) extendedCard(r *http.Request, actor ident.Actor, a hub.Agent) (any, error) {
	if !actor.IsPerson() {
		return nil, fault.New(fault.Unauthenticated,
			"Send an API token of this portal in the Authorization header to read the extended card.")
	}
	c := d.cardOf(d.baseURL(r, a.Handle()), a)
	params := map[string]any{"handle": a.Handle(), "kind": string(a.Kind), "visibility": string(a.Visibility),
		"status":   a.Status.State,
		"liveness": map[string]any{"state": string(a.Liveness.State), "reason": a.Liveness.Reason}}
	if a.OwnerName != "" {
		params["owner"] = a.OwnerName
	}
	if a.Status.Message != "" {
		params["status_message"] = a.Status.Message
	}
	limits := map[string]any{}
	for name, n := range map[string]int{"per_minute": a.Limits.PerMinute, "per_day": a.Limits.PerDay,
		"max_bytes": a.Limits.MaxBytes} {
		if n > 0 {
			limits[name] = n
		}
	}
	if len(limits) > 0 {
		params["limits"] = limits
	}
	c.Capabilities.Extensions = append(c.Capabilities.Extensions, a2a.CardExtension{
		URI: a2a.ExtListing, Description: "The portal's data about the agent: owner, status, liveness and limits.",
		Params: params})
	return d.cfg.Signer.Sign(c)
}

// keySet serves the keys that sign cards together with the keys that sign the portal's requests, so that
// one address suffices to verify both.
func (d *Handler) keySet(w http.ResponseWriter, r *http.Request) {
	d.serveKeys(w, r, "application/jwk-set+json", d.cfg.Signer.Keys()...)
}

// serveDirectory serves only the keys that sign the portal's requests, as the directory of HTTP message
// signatures requires.
func (d *Handler) serveDirectory(w http.ResponseWriter, r *http.Request) {
	d.serveKeys(w, r, "application/http-message-signatures-directory+json")
}

// serveKeys answers with the keys in list and then the keys that sign the portal's requests.
func (d *Handler) serveKeys(w http.ResponseWriter, r *http.Request, mediaType string, list ...any) {
	for _, k := range d.cfg.Operational.Current(clock.Now()) {
		list = append(list, httpsig.KeyOf(k.Public()))
	}
	b, err := json.Marshal(map[string]any{"keys": list})
	if err != nil { // encoding a public key cannot fail
		panic(err)
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(b)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}
