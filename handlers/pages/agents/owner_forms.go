package agents

import (
	"net/http"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

func nothingTyped(map[string]string) templates.OwnerView { return templates.OwnerView{} }

func (d *Owner) shareAgent() request.Handler {
	return d.ownerChange("who", "shared#people",
		func(in map[string]string) templates.OwnerView { return templates.OwnerView{Who: in["who"]} },
		func(r *http.Request, actor ident.Actor, name string, in map[string]string) (string, error) {
			return "", d.hub.AddCoOwner(r.Context(), actor, name, in["who"])
		})
}

// unshareAgent returns the handler that removes a co-owner, possibly the actor.
func (d *Owner) unshareAgent() request.Handler {
	return d.ownerChange("who", "unshared#people", nothingTyped,
		func(r *http.Request, actor ident.Actor, name string, in map[string]string) (string, error) {
			if err := d.hub.RemoveCoOwner(r.Context(), actor, name, in["who"]); err != nil {
				return "", err
			}
			// An actor that removed itself may not be able to see the agent any more, so the target page
			// differs.
			if a, err := d.hub.Get(r.Context(), actor, name); err != nil {
				return "/account", nil
			} else if !a.MayEdit(actor) {
				return "/agents/" + a.Name + "?done=left", nil
			}
			return "", nil
		})
}

// offerAgent returns the handler that offers the agent to another account. An empty name withdraws the
// offer.
func (d *Owner) offerAgent() request.Handler {
	return d.ownerChange("to", "kept#people",
		func(in map[string]string) templates.OwnerView { return templates.OwnerView{To: in["to"]} },
		func(r *http.Request, actor ident.Actor, name string, in map[string]string) (string, error) {
			to, asked := in["to"]
			if asked && (to == "" || in["sure"] == "") {
				if _, err := d.manageable(r, actor); err != nil {
					return "", err
				}
				text := "enter a name"
				if to != "" {
					text = "tick that you want to give it away"
				}
				return "", &fault.Error{Kind: fault.Invalid, Safe: text, Fields: map[string]string{"to": text}}
			}
			if err := d.hub.Offer(r.Context(), actor, name, to); err != nil || !asked {
				return "", err
			}
			return "/agents/" + name + "/owner?done=offered#people", nil
		})
}

// answerOffer accepts or declines an agent that was offered to the actor. Accepting makes the actor its
// main owner.
func (d *Owner) answerOffer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	name, accept := request.PathName(r), in.Get("accept") == "yes"
	if err := d.hub.Answer(r.Context(), actor, name, accept); err != nil {
		return err
	}
	if accept {
		return respond.SeeOther(w, r, "/agents/"+name+"/owner?done=yours")
	}
	return respond.SeeOther(w, r, "/account?done=declined")
}

// proveAgent returns the handler that checks the proof of the agent's address at once.
func (d *Owner) proveAgent() request.Handler {
	return d.ownerChange("proof", "proved#proof", nothingTyped,
		func(r *http.Request, actor ident.Actor, name string, _ map[string]string) (string, error) {
			_, err := d.hub.Proofs.Prove(r.Context(), actor, name)
			return "", err
		})
}

// setStatus returns the handler that publishes, deprecates, withdraws or restores the agent.
func (d *Owner) setStatus() request.Handler {
	return d.ownerChange("state", "status#status",
		func(in map[string]string) templates.OwnerView {
			return templates.OwnerView{Status: templates.StatusView{State: in["state"], Message: in["message"]}}
		},
		func(r *http.Request, actor ident.Actor, name string, in map[string]string) (string, error) {
			s := hub.Status{State: in["state"], Message: in["message"]}
			if s.State == hub.Active || s.State == hub.StatusDraft {
				s.Message = ""
			}
			before, err := d.hub.Get(r.Context(), actor, name)
			draft := err == nil && before.Status.State == hub.StatusDraft
			if _, err := d.hub.Update(r.Context(), actor, name, hub.Draft{Status: &s}); err != nil {
				return "", err
			}
			if draft && s.State == hub.Active {
				return "/agents/" + name + "?done=published", nil
			}
			return "", nil
		})
}

// deleteAgent returns the handler that deletes the agent if its name was typed as confirmation.
func (d *Owner) deleteAgent() request.Handler {
	return d.ownerChange("confirm", "", nothingTyped,
		func(r *http.Request, actor ident.Actor, name string, in map[string]string) (string, error) {
			if in["confirm"] != name {
				if _, err := d.manageable(r, actor); err != nil {
					return "", err
				}
				text := "write " + name + " to delete it"
				return "", &fault.Error{Kind: fault.Invalid, Safe: text, Fields: map[string]string{"confirm": text}}
			}
			return "/account?done=agent-deleted", d.hub.Delete(r.Context(), actor, name)
		})
}
