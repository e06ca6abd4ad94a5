package api

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

type ownersJSON struct {
	Owner     string   `json:"owner"`
	CoOwners  []string `json:"co_owners"`
	OfferedTo string   `json:"offered_to"`
}

// apiOwners lists the owners of an agent. Only they may read the list.
func (d *agentAPI) apiOwners(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.CoOwners(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	a, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	offered, _, err := d.hub.Offered(r.Context(), actor, a.Name)
	if err != nil {
		return err
	}
	names := make([]string, len(list))
	for i, o := range list {
		names[i] = o.Name
	}
	respond.JSON(w, http.StatusOK, ownersJSON{a.OwnerName, names, offered.Name})
	return nil
}

type addOwnerBody struct {
	Name string `json:"name"`
}

func (d *agentAPI) apiAddOwner(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in addOwnerBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if err := d.hub.AddCoOwner(r.Context(), actor, request.PathName(r), in.Name); err != nil {
		return accountField(err, "name")
	}
	return d.apiOwners(w, r, actor)
}

func (d *agentAPI) apiRemoveOwner(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.RemoveCoOwner(r.Context(), actor, request.PathName(r), chi.URLParam(r, "owner")); err != nil {
		return accountField(err, "owner")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type offerBody struct {
	To *string `json:"to"`
}

// apiOffer offers an agent to an account; "" takes the offer back.
func (d *agentAPI) apiOffer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in offerBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if in.To == nil {
		text := `name an account, or give "" to take the offer back`
		return fault.Field("to", text)
	}
	if err := d.hub.Offer(r.Context(), actor, request.PathName(r), *in.To); err != nil {
		return accountField(err, "to")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// accountField renames the field "account" in a service's error to the field of the request body that
// holds it.
func accountField(err error, name string) error {
	f := fault.As(err)
	text, ok := f.Fields["account"]
	if !ok {
		return err
	}
	return &fault.Error{Kind: f.Kind, Safe: name + ": " + text, Fields: map[string]string{name: text}, Err: err}
}

type offerJSON struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	From      string `json:"from"`
	CreatedAt string `json:"created_at"`
}

// apiOffers lists the agents that other accounts have offered to the caller, to be accepted or declined.
func (d *agentAPI) apiOffers(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Offers(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]offerJSON, len(list))
	for i, o := range list {
		out[i] = offerJSON{o.Agent.Name, o.Agent.Title, o.Agent.OwnerName, respond.FormatTime(o.Created)}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"offers": out, "next_cursor": ""})
	return nil
}

type answerBody struct {
	Accept *bool `json:"accept"`
}

func (d *agentAPI) apiAnswerOffer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in answerBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if in.Accept == nil {
		return fault.Field("accept", "say true or false")
	}
	if err := d.hub.Answer(r.Context(), actor, request.PathName(r), *in.Accept); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// apiProve fetches the proof at the agent's address that its owner controls the address, and records the
// result.
func (d *agentAPI) apiProve(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Proofs.Prove(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, d.agentJSON(actor, a))
	return nil
}

type addressProofJSON struct {
	State  string `json:"state"`
	Method string `json:"method"`
	Token  string `json:"token"`
	Path   string `json:"path"`
	Origin string `json:"origin"`
	At     string `json:"at,omitempty"`
}

// apiProof answers with the state of the proof of an agent's address. The token is shown to its owner only.
func (d *agentAPI) apiProof(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	v := addressProofJSON{a.Proof.State, a.Proof.Method, "", hub.ProofPath, a.Proof.Origin,
		respond.FormatTime(a.Proof.At)}
	if a.MayEdit(actor) {
		if v.Origin == "" {
			v.Origin = Origin(a.Endpoint)
		}
		if a.OwnerID == actor.ID {
			v.Token = d.hub.Proofs.OwnerToken(actor)
		}
	}
	respond.JSON(w, http.StatusOK, v)
	return nil
}

// Origin returns scheme, host and port of an address, "" if the address has no host.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// VisibleChanges returns the differences between the version before and at that the actor may read; nil
// if before is nil. Only actors that may edit the agent see changes of the address, the configuration, the
// limits and the pages that may embed it.
func VisibleChanges(agents *hub.Service, actor ident.Actor, now, at hub.Agent, before *hub.Agent) []hub.Change {
	if before == nil {
		return nil
	}
	all, mine := hub.Diff(*before, at), now.MayEdit(actor)
	out := all[:0]
	for _, c := range all {
		if mine || c.Field != "Address" && c.Field != "Limits" && c.Field != hub.EmbedField &&
			!strings.HasPrefix(c.Field, "Setting ") {
			out = append(out, c)
		}
	}
	return out
}
