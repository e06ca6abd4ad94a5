package chat

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

// unsayMessage deletes a message of the actor, or as a moderator another one. The deletion cannot be
// undone.
func (d *Room) unsayMessage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	_, err = d.chat.DeleteMessage(r.Context(), actor, id, seq)
	return d.roomForm(w, r, actor, err, address.MessagePath(id, seq))
}

// reactMessage sets the actor's reaction, or removes it if it is set, as one button serves both.
func (d *Room) reactMessage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	id, emoji := chi.URLParam(r, "id"), strings.TrimSpace(in.Get("emoji"))
	m, err := d.chat.Message(r.Context(), actor, id, seq)
	if err != nil {
		return err
	}
	on := true
	for _, x := range m.Now.Reactions {
		if x.Emoji == emoji && reacted(actor, x) {
			on = false
		}
	}
	_, err = d.chat.React(r.Context(), actor, id, seq, emoji, on)
	return d.roomForm(w, r, actor, err, address.MessagePath(id, seq))
}

// againMessage regenerates an answer: the agent is asked to answer the same message again.
func (d *Room) againMessage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	_, err = d.chat.Regenerate(r.Context(), actor, id, seq, "page")
	return d.roomForm(w, r, actor, err, address.ChatPath(id))
}

// branchMessage copies the conversation up to a message into a new one of the actor.
func (d *Room) branchMessage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	c, err := d.chat.Branch(r.Context(), actor, chi.URLParam(r, "id"), seq)
	return d.roomForm(w, r, actor, err, address.ChatPath(c.ID))
}

// messagePage shows one message with its earlier versions and every action on it, for browsers without
// scripts.
func (d *Room) messagePage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	ctx, id := r.Context(), chi.URLParam(r, "id")
	c, err := d.chat.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	m, err := d.chat.Message(ctx, actor, id, seq)
	if err != nil {
		return err
	}
	if m.Kind.Amends() {
		return respond.SeeOther(w, r, "/chat/"+id+"/m/"+strconv.FormatInt(m.Target, 10))
	}
	who := d.messages.Speakers(ctx, actor)
	v := templates.MessagePageView{ChatID: id, ChatTitle: c.Title,
		Message: d.messageViews(ctx, actor, []chat.Message{m}, who)[0],
		Link:    d.portal.URL + address.MessagePath(id, seq)}
	v.Pictures = d.messages.FindPictures(m)
	d.setVersions(ctx, actor, m, &v.Message)
	mine := message.Said(actor, m.Sender)
	role := api.RoleIn(actor, c)
	gone := !m.Now.UnsaidAt.IsZero()
	v.CanWrite = role != chat.RoleReader
	v.CanEdit = mine && v.CanWrite && !gone
	v.CanUnsay = mine || role == chat.RoleOwner
	if v.Message.Event != "" {
		return respond.SeeOther(w, r, address.MessagePath(id, seq))
	}
	if gone {
		return d.site.Render(w, r, http.StatusOK, templates.MessagePage(d.site.Frame(r, actor, "Message"), v))
	}
	v.Source, _ = editable(m)
	after, err := request.QueryInt(r, "forms", 0)
	if err != nil {
		return err
	}
	forms, more, err := d.chat.Edits(ctx, actor, id, seq, after)
	if err != nil {
		return err
	}
	if more {
		v.LaterHref = fmt.Sprintf("%s?forms=%d#forms", address.MessagePath(id, seq), forms[len(forms)-1].Seq)
	}
	for i, f := range forms {
		text, files := editable(f)
		row := templates.MessageForm{Time: pages.FormatMoment(f.CreatedAt), Now: i == len(forms)-1 && !more, Source: text}
		for _, p := range files {
			row.Files = append(row.Files, message.FilePart(p))
		}
		v.Forms = append(v.Forms, row)
	}
	// The task service returns a task only to the actor that asked for it, so other readers see no
	// artifacts.
	if t, err := d.tasks.Get(ctx, actor, m.TaskID); err == nil && m.Sender.Kind == "agent" {
		v.Artifacts = d.artifacts(actor, t.Artifacts, m.Parts)
	}
	p := d.site.Frame(r, actor, "Message")
	p.Flash = doneText(r)
	return d.site.Render(w, r, http.StatusOK, templates.MessagePage(p, v))
}

// artifacts returns the artifacts of a task without those that its message shows already.
func (d *Room) artifacts(actor ident.Actor, list []task.Artifact, shown []task.Part) []templates.ArtifactView {
	var out []templates.ArtifactView
	for _, a := range task.WithoutAnswer(list, shown) {
		v := templates.ArtifactView{Name: a.Name, Description: a.Description}
		for _, p := range a.Parts {
			d.messages.Part(&v.Body, &v.Data, &v.Files, p)
		}
		d.shelf.addKept(actor, a, &v)
		if v.Body != "" || len(v.Data) > 0 || len(v.Files) > 0 {
			out = append(out, v)
		}
	}
	return out
}
