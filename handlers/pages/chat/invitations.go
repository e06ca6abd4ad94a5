package chat

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
)

// acceptInvitation makes the actor a member and shows the conversation.
func (d *Lists) acceptInvitation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c, err := d.chat.Contacts.Accept(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, address.ChatPath(c.ID))
}

// declineInvitation declines an invitation. block= names its inviter, if the actor blocks them as well.
func (d *Lists) declineInvitation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := d.chat.Contacts.Decline(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	if person := in.Get("block"); person != "" {
		if _, err := d.chat.Contacts.Block(r.Context(), actor, person); err != nil {
			return err
		}
	}
	return respond.SeeOther(w, r, "/chat")
}

// leaveChats leaves the conversations in the form, at most chat.MaxLeft.
func (d *Lists) leaveChats(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if len(in["id"]) > 0 {
		if _, err := d.chat.Contacts.LeaveMany(r.Context(), actor, in["id"]); err != nil {
			return err
		}
	}
	return respond.SeeOther(w, r, "/chat")
}

// blockedBy returns the handles of the people that the actor blocked, by id. Their messages are collapsed.
func (d *Room) blockedBy(r *http.Request, actor ident.Actor) (map[string]string, error) {
	out := make(map[string]string)
	if !actor.IsPerson() {
		return out, nil
	}
	list, err := d.chat.Contacts.Blocks(r.Context(), actor)
	for _, b := range list {
		out[b.ID] = b.Handle
	}
	return out, err
}

// folded reports whether a message is of a blocked person.
func folded(m chat.Message, blocked map[string]string) bool {
	return m.Sender.Kind == "person" && blocked[m.Sender.ID] != ""
}
