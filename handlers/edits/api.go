package edits

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// ServeAsk handles the API route that edits the actor's own question and asks its agents again. It answers 202 with the
// conversation of the new answers, which is another one if the question is not the last.
func (e *Editor) ServeAsk(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	var in struct {
		Text  string      `json:"text"`
		Parts []task.Part `json:"parts"`
	}
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if in.Text != "" && len(in.Parts) > 0 {
		return fault.Field("text", "send text or parts, not both")
	}
	edit := Edit{Conversation: chi.URLParam(r, "id"), Seq: seq, Parts: in.Parts, Face: "api"}
	if in.Text != "" {
		edit.Parts = []task.Part{task.TextPart(in.Text)}
	}
	if r.Header.Get("Authorization") == "" { // the script of a page
		edit.Face, edit.MustTell = "page", true
	}
	id, err := e.Ask(r.Context(), actor, edit)
	if err == nil {
		respond.JSON(w, http.StatusAccepted, map[string]any{"conversation_id": id})
	}
	return err
}
