package chat

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/request"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// roomAction handles a small form of a conversation: do performs the action and returns the path of the
// next page, "" for the conversation itself. An error is shown on the conversation's page.
func (d *Room) roomAction(w http.ResponseWriter, r *http.Request, actor ident.Actor,
	do func(id string, in url.Values) (next string, err error)) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	next, err := do(id, in)
	if next == "" {
		next = request.OwnPath(in.Get("next"), address.ChatPath(id))
	}
	return d.roomForm(w, r, actor, err, next)
}

// stopChat cancels the task in the form, or without one all running tasks of the conversation.
func (d *Room) stopChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		if t := in.Get("task"); t != "" {
			return "", d.stopTask(r, actor, id, t)
		}
		_, err := api.StopAnswers(r.Context(), d.chat, d.tasks, actor, id)
		return "", err
	})
}

// stopTask cancels one task of a conversation. A task that has ended already is not an error.
func (d *Room) stopTask(r *http.Request, actor ident.Actor, id, taskID string) error {
	if _, err := d.chat.Get(r.Context(), actor, id); err != nil {
		return err
	}
	_, err := d.tasks.Cancel(r.Context(), actor, taskID)
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}

func (d *Room) renameChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		_, err := d.chat.Rename(r.Context(), actor, id, in.Get("title"))
		return "", err
	})
}

func (d *Room) inviteMember(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		_, err := d.chat.Invite(r.Context(), actor, id, strings.TrimSpace(in.Get("member")))
		return "", err
	})
}

func (d *Room) removeMember(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		return "", d.chat.Remove(r.Context(), actor, id, in.Get("member"))
	})
}

// setMemberRole changes the role of a member: owner, member or reader.
func (d *Room) setMemberRole(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		return "", d.chat.SetRole(r.Context(), actor, id, in.Get("member"), in.Get("role"))
	})
}

func (d *Room) leaveChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		return "/chat", d.chat.DeleteConversation(r.Context(), actor, id)
	})
}

func (d *Room) deleteChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.leaveChat(w, r, actor)
}

// The following three handlers change the actor's own settings of a conversation: pinned=true|false,
// archived=true|false, notify=.

func (d *Room) pinChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		_, err := d.chat.Set(r.Context(), actor, id, chat.Change{Pinned: new(in.Get("pinned") != "false")})
		return "", err
	})
}

func (d *Room) archiveChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		_, err := d.chat.Set(r.Context(), actor, id, chat.Change{Archived: new(in.Get("archived") != "false")})
		return "", err
	})
}

func (d *Room) notifyChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.roomAction(w, r, actor, func(id string, in url.Values) (string, error) {
		_, err := d.chat.Set(r.Context(), actor, id, chat.Change{Notify: new(chat.Notify(in.Get("notify")))})
		return "", err
	})
}
