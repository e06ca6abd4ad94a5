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
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// CardType is the media type of cards in catalogs.
const CardType = "application/a2a-agent-card+json"

// cardAge is how long a card may be kept without asking again, in seconds:
// what an owner changes is seen within minutes.
const cardAge = "300"

// card answers with an agent's card to whoever may see its page. It never
// redirects: clients take the address of a card for its agent's.
func (d *Door) card(w http.ResponseWriter, r *http.Request) {
	a, err := d.described(r)
	var b []byte
	if err == nil {
		b, err = d.written(d.base(r, a.Handle()), a)
	}
	if err != nil {
		f := d.failure(r, err)
		refuse(w.Header(), f)
		send(w, f.HTTP(), "application/json", f.REST())
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
	if changed.Before(d.cfg.Started) { // another portal version may write it otherwise
		changed = d.cfg.Started
	}
	http.ServeContent(w, r, "", changed.Truncate(time.Second), bytes.NewReader(b))
}

// described is the agent whose card is asked for. A card that anybody may read
// is for those too whose credential has ended: it says where to get one.
func (d *Door) described(r *http.Request) (hub.Agent, error) {
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

// written is an agent's card as it is served.
func (d *Door) written(base string, a hub.Agent) ([]byte, error) {
	return d.cards.signed(d.cfg.Signer, d.cardOf(base, a))
}

// Card is an agent's own card as it is served to who may see it.
func (d *Door) Card(a hub.Agent) ([]byte, error) { return d.written(d.agentBase(a.Handle()), a) }

// cardOf writes an agent's card.
func (d *Door) cardOf(base string, a hub.Agent) a2a.AgentCard {
	f := a2a.Face{Base: base, Provider: d.cfg.Name, Home: d.cfg.URL, Page: d.cfg.URL + "/agents/" + url.PathEscape(a.Handle()),
		Only10: !a.Elsewhere() && a.Kind == hub.Builtin && a.Name == d.cfg.Only10, Open: d.cfg.Guests && a.Visibility == hub.Public && a.Limits.Callers == ""}
	if a.Icon != "" {
		f.Icon = f.Page + "/icon"
	}
	if a.Elsewhere() {
		f.Provider, f.Home = a.Portal, cmp.Or(d.cfg.Hub.Source(a).URL, d.cfg.URL)
	}
	return a2a.MakeCard(a2a.DescribeRelay(a, d.cfg.Host), f)
}

// extended is the card for those who have an account: what the portal knows of
// the agent goes along as an extension.
func (d *Door) extended(r *http.Request, actor ident.Actor, a hub.Agent) (any, error) {
	if !actor.IsPerson() {
		return nil, fault.New(fault.Unauthenticated, "Send an API token of this portal in the Authorization header to read the extended card.")
	}
	c := d.cardOf(d.base(r, a.Handle()), a)
	params := map[string]any{"handle": a.Handle(), "kind": string(a.Kind), "visibility": string(a.Visibility), "status": a.Status.State,
		"liveness": map[string]any{"state": string(a.Liveness.State), "reason": a.Liveness.Reason}}
	if a.OwnerName != "" {
		params["owner"] = a.OwnerName
	}
	if a.Status.Message != "" {
		params["status_message"] = a.Status.Message
	}
	limits := map[string]any{}
	for name, n := range map[string]int{"per_minute": a.Limits.PerMinute, "per_day": a.Limits.PerDay, "max_bytes": a.Limits.MaxBytes} {
		if n > 0 {
			limits[name] = n
		}
	}
	if len(limits) > 0 {
		params["limits"] = limits
	}
	c.Capabilities.Extensions = append(c.Capabilities.Extensions, a2a.CardExtension{
		URI: a2a.ExtListing, Description: "What the portal knows of the agent: owner, status, liveness and limits.", Params: params})
	return d.cfg.Signer.Sign(c)
}

// keySet answers with the keys that cards are signed by and that requests of
// the portal are.
func (d *Door) keySet(w http.ResponseWriter, r *http.Request) {
	d.keys(w, r, "application/jwk-set+json", d.cfg.Signer.Keys()...)
}

// directory answers with the keys that requests of the portal are signed by.
func (d *Door) directory(w http.ResponseWriter, r *http.Request) {
	d.keys(w, r, "application/http-message-signatures-directory+json")
}

// keys answers with a set of keys: some, and those of the portal's requests.
func (d *Door) keys(w http.ResponseWriter, r *http.Request, mediaType string, list ...any) {
	for _, k := range d.cfg.PortalKeys() {
		list = append(list, k)
	}
	b, err := json.Marshal(map[string]any{"keys": list})
	if err != nil { // a public key can be written
		panic(err)
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(b)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}
