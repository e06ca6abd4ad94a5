package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

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
	State  task.State `json:"state,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

type messageJSON struct {
	Seq       int64        `json:"seq"`
	ID        string       `json:"id"`
	Sender    senderJSON   `json:"sender"`
	Kind      chat.Kind    `json:"kind"`
	Parts     []task.Part  `json:"parts"`
	Task      *taskRefJSON `json:"task,omitempty"`
	CreatedAt string       `json:"created_at"`
}

func newMessageJSON(m chat.Message) messageJSON {
	j := messageJSON{Seq: m.Seq, ID: m.ID, Sender: senderJSON{m.Sender.Kind, m.Sender.Handle, true}, Kind: m.Kind, Parts: m.Parts, CreatedAt: stamp(m.CreatedAt)}
	if j.Parts == nil {
		j.Parts = []task.Part{}
	}
	if m.TaskID != "" {
		j.Task = &taskRefJSON{m.TaskID, m.TaskState, m.Reason}
	}
	return j
}

type memberJSON struct {
	Kind   string `json:"kind"`
	Handle string `json:"handle"`
	Role   string `json:"role"`
	Remote string `json:"remote,omitempty"`
}

type conversationJSON struct {
	ID        string       `json:"id"`
	Title     string       `json:"title"`
	Members   []memberJSON `json:"members"`
	LastSeq   int64        `json:"last_seq"`
	Unread    int64        `json:"unread"`
	Snippet   string       `json:"snippet,omitempty"`
	CreatedAt string       `json:"created_at"`
	UpdatedAt string       `json:"updated_at"`
}

func newConversationJSON(c chat.Conversation) conversationJSON {
	j := conversationJSON{ID: c.ID, Title: c.Title, Members: []memberJSON{}, LastSeq: c.LastSeq, Unread: max(0, c.LastSeq-c.ReadSeq), Snippet: c.Snippet,
		CreatedAt: stamp(c.CreatedAt), UpdatedAt: stamp(c.UpdatedAt)}
	for _, m := range c.Members {
		j.Members = append(j.Members, memberJSON{m.Kind, m.Handle, m.Role, m.Remote})
	}
	return j
}

func (d *Door) apiConversations(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := number(r, "limit", 50)
	if err != nil {
		return err
	}
	before, err := parsePoint(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to see your conversations.")
	}
	list, err := d.chat.List(r.Context(), actor, before, int(limit))
	if err != nil {
		return err
	}
	out := make([]conversationJSON, len(list))
	for i, c := range list {
		out[i] = newConversationJSON(c)
	}
	next := ""
	if len(list) == int(limit) {
		last := list[len(list)-1]
		next = pointCursor(chat.Point{At: last.UpdatedAt, ID: last.ID})
	}
	writeJSON(w, http.StatusOK, map[string]any{"conversations": out, "next_cursor": next})
	return nil
}

func (d *Door) apiCreateConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in struct {
		Title   string   `json:"title"`
		Members []string `json:"members"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	actor, err := d.asGuest(w, r, actor)
	if err != nil {
		return err
	}
	c, err := d.chat.Create(r.Context(), actor, in.Title, in.Members)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/conversations/"+c.ID)
	writeJSON(w, http.StatusCreated, newConversationJSON(c))
	return nil
}

func (d *Door) apiConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c, err := d.chat.Get(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, newConversationJSON(c))
	return nil
}

func (d *Door) apiRenameConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in struct {
		Title string `json:"title"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	c, err := d.chat.Rename(r.Context(), actor, chi.URLParam(r, "id"), in.Title)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, newConversationJSON(c))
	return nil
}

func (d *Door) apiDeleteConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.chat.Delete(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Door) apiMessages(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	after, err := number(r, "after", 0)
	if err != nil {
		return err
	}
	before, err := number(r, "before", 0)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", 50)
	if err != nil {
		return err
	}
	newest := r.URL.Query().Get("order") == "newest" || before > 0 && after == 0
	list, err := d.chat.Messages(r.Context(), actor, chi.URLParam(r, "id"), after, before, int(limit), newest)
	if err != nil {
		return err
	}
	out := make([]messageJSON, len(list))
	for i, m := range list {
		out[i] = newMessageJSON(m)
	}
	next := ""
	if len(out) == int(limit) && !newest {
		next = fmt.Sprint(out[len(out)-1].Seq)
	}
	writeJSON(w, http.StatusOK, map[string]any{"messages": out, "next_cursor": next})
	return nil
}

func (d *Door) apiPost(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in struct {
		ClientID string      `json:"client_id"`
		Text     string      `json:"text"`
		Parts    []task.Part `json:"parts"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.Text != "" && len(in.Parts) > 0 {
		return &fault.Error{Kind: fault.Invalid, Safe: "text: send text or parts, not both", Fields: map[string]string{"text": "send text or parts, not both"}}
	}
	if in.Text != "" {
		in.Parts = []task.Part{task.TextPart(in.Text)}
	}
	done, err := d.chat.Post(r.Context(), actor, chi.URLParam(r, "id"), chat.Draft{ClientID: in.ClientID, Parts: in.Parts, Face: "api"})
	if err != nil {
		return err
	}
	code := http.StatusCreated
	if done.Repeat {
		code = http.StatusOK
	}
	tasks := make([]taskRefJSON, 0, len(done.Tasks))
	for _, t := range done.Tasks {
		tasks = append(tasks, taskRefJSON{ID: t.ID, State: t.State})
	}
	answer := map[string]any{"id": done.Message.ID, "seq": done.Message.Seq}
	if len(tasks) > 0 {
		answer["tasks"] = tasks
	}
	writeJSON(w, code, answer)
	return nil
}

func (d *Door) apiInvite(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	handles, err := memberHandles(w, r)
	if err != nil {
		return err
	}
	var out []memberJSON
	for _, h := range handles {
		m, err := d.chat.Invite(r.Context(), actor, chi.URLParam(r, "id"), h)
		if err != nil {
			return err
		}
		out = append(out, memberJSON{m.Kind, m.Handle, m.Role, m.Remote})
	}
	writeJSON(w, http.StatusCreated, map[string]any{"members": out})
	return nil
}

// memberHandles reads whom a request names: {"handle":"guide"} or
// {"members":["guide"]}.
func memberHandles(w http.ResponseWriter, r *http.Request) ([]string, error) {
	var in struct {
		Handle  string   `json:"handle"`
		Members []string `json:"members"`
	}
	if err := decode(w, r, &in); err != nil {
		return nil, err
	}
	if in.Handle != "" {
		in.Members = append(in.Members, in.Handle)
	}
	if len(in.Members) == 0 || len(in.Members) > chat.MaxMembers {
		return nil, &fault.Error{Kind: fault.Invalid, Safe: `members: name whom, for example {"members":["guide"]}`, Fields: map[string]string{"members": "name whom"}}
	}
	return in.Members, nil
}

func (d *Door) apiRemoveMember(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	handles := []string{chi.URLParam(r, "handle")}
	if handles[0] == "" {
		handles[0] = r.URL.Query().Get("handle")
	}
	if handles[0] == "" {
		var err error
		if handles, err = memberHandles(w, r); err != nil {
			return err
		}
	}
	for _, h := range handles {
		if err := d.chat.Remove(r.Context(), actor, chi.URLParam(r, "id"), h); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Door) apiMarkRead(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in struct {
		Seq int64 `json:"seq"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.Seq < 0 {
		return &fault.Error{Kind: fault.Invalid, Safe: "seq: must not be negative", Fields: map[string]string{"seq": "must not be negative"}}
	}
	if err := d.chat.Read(r.Context(), actor, chi.URLParam(r, "id"), in.Seq); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Door) apiStop(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	n, err := d.stop(r, actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"stopped": n})
	return nil
}

// stop ends whatever is answering in a conversation the actor may write in.
func (d *Door) stop(r *http.Request, actor ident.Actor, id string) (int, error) {
	if !actor.May(ident.ChatWrite) {
		return 0, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.ChatWrite)
	}
	if _, err := d.chat.Get(r.Context(), actor, id); err != nil {
		return 0, err
	}
	return d.tasks.StopConversation(r.Context(), actor, id)
}

// exportPage is how many messages are read at once.
const exportPage = 200

// apiExport writes the whole conversation as Markdown, or as JSON with
// ?format=json or Accept: application/json.
func (d *Door) apiExport(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id := chi.URLParam(r, "id")
	c, err := d.chat.Get(r.Context(), actor, id)
	if err != nil {
		return err
	}
	format := r.URL.Query().Get("format")
	if format == "" && strings.Contains(r.Header.Get("Accept"), "application/json") {
		format = "json"
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	name := "conversation-" + c.ID
	var begin, end func() error
	var each func(chat.Message) error
	switch format {
	case "json":
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+name+`.json"`)
		comma := ""
		begin = func() error {
			b, err := json.Marshal(newConversationJSON(c))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(w, `{"conversation":%s,"messages":[`, b)
			return err
		}
		each = func(m chat.Message) error {
			b, err := json.Marshal(newMessageJSON(m))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(w, "%s\n%s", comma, b)
			comma = ","
			return err
		}
		end = func() error { _, err := fmt.Fprint(w, "\n]}\n"); return err }
	case "", "markdown", "md":
		h.Set("Content-Type", "text/markdown; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+name+`.md"`)
		begin = func() error {
			title := c.Title
			if title == "" {
				title = "Conversation"
			}
			_, err := fmt.Fprintf(w, "# %s\n\nOn %s, %s.\n", title, d.cfg.Host, c.CreatedAt.Format(time.RFC1123))
			return err
		}
		each = func(m chat.Message) error {
			text := task.PlainText(m.Parts)
			if m.Kind == chat.Event {
				_, err := fmt.Fprintf(w, "\n*%s*\n", text)
				return err
			}
			_, err := fmt.Fprintf(w, "\n**%s**, %s:\n\n%s\n", m.Sender.Handle, m.CreatedAt.Format("2006-01-02 15:04:05"), text)
			return err
		}
		end = func() error { return nil }
	default:
		return &fault.Error{Kind: fault.Invalid, Safe: "format: use markdown or json", Fields: map[string]string{"format": "use markdown or json"}}
	}
	if err := begin(); err != nil {
		return nil // the reader went away
	}
	rc := http.NewResponseController(w)
	for after := int64(0); ; {
		rc.SetWriteDeadline(time.Now().Add(time.Minute)) // a minute a page, however long it is
		list, err := d.chat.Messages(r.Context(), actor, id, after, 0, exportPage, false)
		if err != nil {
			d.cfg.Log.Warn("export broke off", "conversation", id, "error", err)
			panic(http.ErrAbortHandler) // the reader must not take half for whole
		}
		for _, m := range list {
			if each(m) != nil {
				return nil
			}
			after = m.Seq
		}
		if len(list) < exportPage {
			break
		}
	}
	end()
	return nil
}
