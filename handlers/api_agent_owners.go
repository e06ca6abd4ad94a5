package handlers

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

type ownersJSON struct {
	Owner     string   `json:"owner"`
	CoOwners  []string `json:"co_owners"`
	OfferedTo string   `json:"offered_to"`
}

// apiOwners names who owns an agent, for its owners.
func (d *Door) apiOwners(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.CoOwners(r.Context(), actor, pathName(r))
	if err != nil {
		return err
	}
	a, err := d.hub.Get(r.Context(), actor, pathName(r))
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
	writeJSON(w, http.StatusOK, ownersJSON{a.OwnerName, names, offered.Name})
	return nil
}

type addOwnerBody struct {
	Name string `json:"name"`
}

func (d *Door) apiAddOwner(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in addOwnerBody
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if err := d.hub.AddCoOwner(r.Context(), actor, pathName(r), in.Name); err != nil {
		return accountField(err, "name")
	}
	return d.apiOwners(w, r, actor)
}

func (d *Door) apiRemoveOwner(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.RemoveCoOwner(r.Context(), actor, pathName(r), chi.URLParam(r, "owner")); err != nil {
		return accountField(err, "owner")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

type offerBody struct {
	To *string `json:"to"`
}

// apiOffer offers an agent to an account; "" takes the offer back.
func (d *Door) apiOffer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in offerBody
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.To == nil {
		text := `name an account, or give "" to take the offer back`
		return fault.Field("to", text)
	}
	if err := d.hub.Offer(r.Context(), actor, pathName(r), *in.To); err != nil {
		return accountField(err, "to")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// accountField names the account of a request as the API does.
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

// apiOffers lists what is offered to the caller.
func (d *Door) apiOffers(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Offers(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]offerJSON, len(list))
	for i, o := range list {
		out[i] = offerJSON{o.Agent.Name, o.Agent.Title, o.Agent.OwnerName, stamp(o.Created)}
	}
	writeJSON(w, http.StatusOK, map[string]any{"offers": out, "next_cursor": ""})
	return nil
}

type answerBody struct {
	Accept *bool `json:"accept"`
}

func (d *Door) apiAnswerOffer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in answerBody
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.Accept == nil {
		return fault.Field("accept", "say true or false")
	}
	if err := d.hub.Answer(r.Context(), actor, pathName(r), *in.Accept); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// apiProve looks for the proof that the owner may list the agent's address.
func (d *Door) apiProve(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Prove(r.Context(), actor, pathName(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, d.agentJSON(actor, a))
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

// apiProof tells how the address of an agent is proved. The token is for its
// owner alone.
func (d *Door) apiProof(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Get(r.Context(), actor, pathName(r))
	if err != nil {
		return err
	}
	v := addressProofJSON{a.Proof.State, a.Proof.Method, "", hub.ProofPath, a.Proof.Origin, stamp(a.Proof.At)}
	if d.hub.MayEdit(actor, a) {
		if v.Origin == "" {
			v.Origin = originOf(a.Endpoint)
		}
		if a.OwnerID == actor.ID {
			v.Token = d.hub.OwnerToken(actor)
		}
	}
	writeJSON(w, http.StatusOK, v)
	return nil
}
