package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
)

type invitationJSON struct {
	ConversationID string `json:"conversation_id"`
	Title          string `json:"title"`
	Inviter        string `json:"inviter"`
	Members        int    `json:"members"`
	CreatedAt      string `json:"created_at"`
}

// apiInvitations lists the conversations that the actor is invited to, newest first.
func (d *chatAPI) apiInvitations(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.chat.Contacts.List(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]invitationJSON, len(list))
	for i, p := range list {
		out[i] = invitationJSON{p.ConversationID, p.Title, p.Inviter, p.Members, respond.FormatTime(p.CreatedAt)}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"invitations": out, "next_cursor": ""})
	return nil
}

func (d *chatAPI) apiAccept(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c, err := d.chat.Contacts.Accept(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newConversationJSON(c))
	return nil
}

func (d *chatAPI) apiDecline(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return nothing(w, d.chat.Contacts.Decline(r.Context(), actor, chi.URLParam(r, "id")))
}

type leaveBody struct {
	IDs []string `json:"ids"`
}

// apiLeaveMany leaves several conversations and answers with those that the actor was in.
func (d *chatAPI) apiLeaveMany(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in leaveBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	left, err := d.chat.Contacts.LeaveMany(r.Context(), actor, in.IDs)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, map[string]any{"left": left})
	return nil
}

type blockJSON struct {
	Person    string `json:"person"`
	CreatedAt string `json:"created_at"`
}

func newBlockJSON(b chat.Block) blockJSON {
	return blockJSON{b.Handle, respond.FormatTime(b.CreatedAt)}
}

func (d *chatAPI) apiBlocks(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.chat.Contacts.Blocks(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]blockJSON, len(list))
	for i, b := range list {
		out[i] = newBlockJSON(b)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"blocks": out, "next_cursor": ""})
	return nil
}

func (d *chatAPI) apiBlock(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	b, err := d.chat.Contacts.Block(r.Context(), actor, request.PathParam(r, "person"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newBlockJSON(b))
	return nil
}

func (d *chatAPI) apiUnblock(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return nothing(w, d.chat.Contacts.Unblock(r.Context(), actor, request.PathParam(r, "person")))
}

// declareInvitations declares the routes of invitations and of the people that an account blocked.
func (d *chatAPI) declareInvitations(r chi.Router) {
	r.Get("/invitations", d.sessions.API(d.apiInvitations))
	r.Post("/conversations/{id}/accept", d.sessions.API(d.apiAccept))
	r.Post("/conversations/{id}/decline", d.sessions.API(d.apiDecline))
	r.Post("/conversations/leave", d.sessions.API(d.apiLeaveMany))
	r.Get("/blocks", d.sessions.API(d.apiBlocks))
	r.Put("/blocks/{person}", d.sessions.API(d.apiBlock))
	r.Delete("/blocks/{person}", d.sessions.API(d.apiUnblock))
}
