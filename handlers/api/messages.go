package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

type senderJSON struct {
	Kind     string `json:"kind"`
	Handle   string `json:"handle"`
	Verified bool   `json:"verified"`
}

type taskRefJSON struct {
	ID     string     `json:"id"`
	Agent  string     `json:"agent,omitempty"`
	State  task.State `json:"state,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// RetryAfter is set for a task that was refused because its agent was busy, in seconds.
	RetryAfter int64 `json:"retry_after,omitempty"`
}

type unsaidJSON struct {
	At string `json:"at"`
	By string `json:"by"`
}

type reactionJSON struct {
	Emoji string   `json:"emoji"`
	By    []string `json:"by"`
}

// MessageJSON is a message in its present state, after edits, reactions and deletion. Live delivery sends
// the same form.
type MessageJSON struct {
	Seq       int64          `json:"seq"`
	ID        string         `json:"id"`
	Sender    senderJSON     `json:"sender"`
	Kind      chat.Kind      `json:"kind"`
	Parts     []task.Part    `json:"parts"`
	Target    int64          `json:"target,omitempty"`
	Task      *taskRefJSON   `json:"task,omitempty"`
	EditedAt  string         `json:"edited_at,omitempty"`
	Unsaid    *unsaidJSON    `json:"unsaid,omitempty"`
	NewerSeq  int64          `json:"newer_seq,omitempty"`
	Asked     bool           `json:"asked,omitempty"` // it asked an agent; only set for a single message
	Reactions []reactionJSON `json:"reactions,omitempty"`
	CreatedAt string         `json:"created_at"`
}

func NewMessageJSON(m chat.Message) MessageJSON {
	j := MessageJSON{Seq: m.Seq, ID: m.ID, Sender: senderJSON{m.Sender.Kind, m.Sender.Handle, true}, Kind: m.Kind,
		Parts: m.Parts, Target: m.Target, EditedAt: respond.FormatTime(m.Now.EditedAt), NewerSeq: m.Now.NewerSeq,
		CreatedAt: respond.FormatTime(m.CreatedAt)}
	if j.Parts == nil {
		j.Parts = []task.Part{}
	}
	if m.TaskID != "" {
		j.Task = &taskRefJSON{ID: m.TaskID, State: m.TaskState, Reason: m.Reason, RetryAfter: retrySeconds(m)}
	}
	if !m.Now.UnsaidAt.IsZero() {
		j.Unsaid = &unsaidJSON{respond.FormatTime(m.Now.UnsaidAt), m.Now.UnsaidBy}
	}
	for _, x := range m.Now.Reactions {
		by := make([]string, len(x.By))
		for i, who := range x.By {
			by[i] = who.Handle
		}
		j.Reactions = append(j.Reactions, reactionJSON{x.Emoji, by})
	}
	return j
}

// retrySeconds returns the seconds after which a task that was refused as busy may be asked for again, 0
// for other messages.
func retrySeconds(m chat.Message) int64 {
	wait, _ := m.RetryAfter()
	return int64(wait / time.Second)
}

func newMessagesJSON(list []chat.Message) []MessageJSON {
	out := make([]MessageJSON, len(list))
	for i, m := range list {
		out[i] = NewMessageJSON(m)
	}
	return out
}

func (d *chatAPI) apiMessages(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	after, err := request.QueryInt(r, "after", 0)
	if err != nil {
		return err
	}
	before, err := request.QueryInt(r, "before", 0)
	if err != nil {
		return err
	}
	limit, err := request.QueryInt(r, "limit", 50)
	if err != nil {
		return err
	}
	newest := r.URL.Query().Get("order") == "newest" || before > 0 && after == 0
	list, more, err := d.chat.Messages(r.Context(), actor, chi.URLParam(r, "id"),
		chat.Span{After: after, Before: before, Limit: int(limit), Newest: newest})
	if err != nil {
		return err
	}
	next := ""
	if more && !newest {
		next = fmt.Sprint(list[len(list)-1].Seq)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"messages": newMessagesJSON(list), "next_cursor": next})
	return nil
}

// saidParts returns the parts of a new message: the text as one part, or the given parts. Both together
// are an error.
func saidParts(text string, parts []task.Part) ([]task.Part, error) {
	switch {
	case text != "" && len(parts) > 0:
		return nil, fault.Field("text", "send text or parts, not both")
	case text != "":
		return []task.Part{task.TextPart(text)}, nil
	}
	return parts, nil
}

// byBrowser reports whether a request is authorized by the session cookie and not by a token. Only people
// in a browser must confirm the disclosure about texts that leave the portal.
func byBrowser(r *http.Request) bool { return r.Header.Get("Authorization") == "" }

// doorOf returns the origin that is recorded with a task: "page" for requests with a session cookie, such
// as those of a page's script, "api" for others.
func doorOf(r *http.Request) string {
	if byBrowser(r) {
		return "page"
	}
	return "api"
}

type sayBody struct {
	ClientID string      `json:"client_id"`
	Text     string      `json:"text"`
	Parts    []task.Part `json:"parts"`
	ReplyTo  int64       `json:"reply_to"`
	Told     []string    `json:"told"`
	Share    chat.Share  `json:"share"`
}

func (d *chatAPI) apiPost(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in sayBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	parts, err := saidParts(in.Text, in.Parts)
	if err != nil {
		return err
	}
	done, err := d.chat.Post(r.Context(), actor, chi.URLParam(r, "id"),
		chat.Draft{ClientID: in.ClientID, Parts: parts, Face: doorOf(r),
			Quotes: in.ReplyTo, Told: in.Told, Share: in.Share, MustTell: byBrowser(r)})
	if err != nil {
		return err
	}
	code := http.StatusCreated
	if done.Repeat {
		code = http.StatusOK
	}
	tasks := make([]taskRefJSON, 0, len(done.Tasks)+len(done.Refused))
	for _, t := range done.Tasks {
		tasks = append(tasks, taskRefJSON{ID: t.ID, Agent: t.AgentHandle, State: t.State})
	}
	for _, e := range done.Refused {
		tasks = append(tasks, taskRefJSON{ID: e.Task.ID, Agent: e.Task.AgentHandle, State: e.Task.State,
			Reason: e.Task.Reason, RetryAfter: retrySeconds(e.Message)})
	}
	answer := map[string]any{"id": done.Message.ID, "seq": done.Message.Seq}
	if len(tasks) > 0 {
		answer["tasks"] = tasks
	}
	if done.Held > 0 {
		answer["held"] = done.Held
	}
	respond.JSON(w, code, answer)
	return nil
}

func (d *chatAPI) apiMessage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	m, err := d.chat.Message(r.Context(), actor, id, seq)
	if err != nil {
		return err
	}
	j := NewMessageJSON(m)
	if j.Asked, err = d.edits.Asked(r.Context(), actor, m); err == nil {
		respond.JSON(w, http.StatusOK, j)
	}
	return err
}

func shownMessage(w http.ResponseWriter, m chat.Message, err error) error {
	if err == nil {
		respond.JSON(w, http.StatusOK, NewMessageJSON(m))
	}
	return err
}

// apiEdits answers with the earlier versions of a message, oldest first.
func (d *chatAPI) apiEdits(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	after, err := request.QueryInt(r, "cursor", 0)
	if err != nil {
		return err
	}
	list, more, err := d.chat.Edits(r.Context(), actor, chi.URLParam(r, "id"), seq, after)
	if err != nil {
		return err
	}
	next := ""
	if more {
		next = fmt.Sprint(list[len(list)-1].Seq)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"edits": newMessagesJSON(list), "next_cursor": next})
	return nil
}

type editBody struct {
	Text  string      `json:"text"`
	Parts []task.Part `json:"parts"`
}

func (d *chatAPI) apiEdit(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	var in editBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	parts, err := saidParts(in.Text, in.Parts)
	if err != nil {
		return err
	}
	m, err := d.chat.Edit(r.Context(), actor, chi.URLParam(r, "id"), seq, parts)
	return shownMessage(w, m, err)
}

func (d *chatAPI) apiUnsay(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	m, err := d.chat.DeleteMessage(r.Context(), actor, chi.URLParam(r, "id"), seq)
	return shownMessage(w, m, err)
}

// apiReact sets the actor's reaction (PUT) or removes it (DELETE).
func (d *chatAPI) apiReact(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	m, err := d.chat.React(r.Context(), actor, chi.URLParam(r, "id"), seq, request.PathParam(r, "emoji"),
		r.Method == http.MethodPut)
	return shownMessage(w, m, err)
}

// apiAgain regenerates an answer: the agent is asked again with the same message. It answers 202 with the
// new task.
func (d *chatAPI) apiAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	t, err := d.chat.Regenerate(r.Context(), actor, chi.URLParam(r, "id"), seq, doorOf(r))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusAccepted, map[string]any{"task": taskRefJSON{ID: t.ID, Agent: t.AgentHandle,
		State: t.State}})
	return nil
}

type branchBody struct {
	Seq int64 `json:"seq"`
}

// apiBranch copies a conversation up to a message into a new one that only the actor is a member of.
func (d *chatAPI) apiBranch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in branchBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if in.Seq < 1 {
		return fault.Field("seq", "say up to which message")
	}
	c, err := d.chat.Branch(r.Context(), actor, chi.URLParam(r, "id"), in.Seq)
	if err != nil {
		return err
	}
	created(w, c)
	return nil
}
