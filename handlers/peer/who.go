package peer

import (
	"encoding/json"
	"net/http"
	"time"

	"agentsite/handlers/request"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// wholeJSON is the public description of this portal, docs/design/peering.md.
type wholeJSON struct {
	Network string          `json:"network"`
	Portal  record.PortalID `json:"portal"`
	Origin  string          `json:"origin"`
	Name    string          `json:"name"`
	Version string          `json:"version"`
	Peering string          `json:"peering"`
	Card    json.RawMessage `json:"card"`
	Head    json.RawMessage `json:"head,omitempty"`
}

// servePortal answers with the public description of this portal. Without a signed card, which an offline
// key may have to sign, it refuses with busy.
func (d *Door) servePortal(w http.ResponseWriter, r *http.Request) error {
	self := d.cfg.Self
	wire, card := self.Card(), self.Content()
	if card == nil {
		return federation.RefuseFor(federation.ReasonBusy, time.Hour,
			"This portal has no card now: its operator has to sign one.")
	}
	head, err := d.cfg.Replica.Head(r.Context(), self.ID())
	if err != nil {
		return err
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	return d.writeAnswer(w, r, wholeJSON{self.Network(), self.ID(), card.Origin, card.Name, d.cfg.Version,
		card.Origin + Base, wire, head})
}

// statusJSON is the public status of this portal, for monitoring.
type statusJSON struct {
	Version string          `json:"version"`
	Network string          `json:"network"`
	Portal  record.PortalID `json:"portal"`
	Portals int             `json:"portals"`
	Agents  int             `json:"agents"`
	Tier    string          `json:"tier"`
	Time    time.Time       `json:"time"`
}

func (d *Door) serveStatus(w http.ResponseWriter, r *http.Request) error {
	portals, agents := d.cfg.Peers.Counts()
	return d.writeAnswer(w, r, statusJSON{d.cfg.Version, d.cfg.Self.Network(), d.cfg.Self.ID(), portals, agents,
		d.ownTier(), clock.Now()})
}

func (d *Door) ownTier() string {
	if d.cfg.Tiers == nil {
		return record.TierReplica
	}
	return d.cfg.Tiers.Tier()
}

// helloJSON is the body of a handshake in both directions: the sender's card and head, and in the answer
// the state that the receiver gave the sender.
type helloJSON struct {
	Card  json.RawMessage  `json:"card"`
	Head  json.RawMessage  `json:"head,omitempty"`
	State federation.State `json:"state,omitempty"`
}

// serveHello handles a handshake: it verifies and stores the caller's card, and answers with this
// portal's card and head.
func (d *Door) serveHello(w http.ResponseWriter, r *http.Request) error {
	addr := request.ClientAddr(r)
	if err := d.cfg.Guard.ArriveNew(addr); err != nil {
		return err
	}
	body, err := d.readBody(w, r)
	if err != nil {
		return err
	}
	var in helloJSON
	if err := Decode(body, &in); err != nil {
		return err
	}
	asker, done, err := d.cfg.Guard.Hello(r, body, in.Card, addr)
	if err != nil {
		return err
	}
	defer done()
	self := d.cfg.Self
	out := helloJSON{Card: self.Card(), State: federation.Pending}
	if asker.Decision.In {
		out.State = federation.Active
	}
	if out.Head, err = d.cfg.Replica.Head(r.Context(), self.ID()); err != nil {
		return err
	}
	if out.Card == nil {
		return federation.RefuseFor(federation.ReasonBusy, time.Hour,
			"This portal has no card now: its operator has to sign one.")
	}
	if d.cfg.Handshakes != nil {
		d.cfg.Handshakes.OnHandshake(r.Context(), asker, in.Head)
	}
	return d.writeAnswer(w, r, out)
}
