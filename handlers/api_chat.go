package handlers

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

type memberJSON struct {
	Kind   string `json:"kind"`
	Handle string `json:"handle"`
	Role   string `json:"role"`
	Remote string `json:"remote,omitempty"`
}

func newMemberJSON(m chat.Member) memberJSON {
	return memberJSON{m.Kind, m.Handle, m.Role, m.Remote}
}

func newMembersJSON(list []chat.Member) []memberJSON {
	out := make([]memberJSON, len(list))
	for i, m := range list {
		out[i] = newMemberJSON(m)
	}
	return out
}

type settingsJSON struct {
	Speaks  chat.Speaks `json:"speaks"`
	Speaker string      `json:"speaker,omitempty"` // handle
	Past    chat.Past   `json:"past"`
	Hops    int         `json:"hops"`
	Turns   int         `json:"turns"`
	Budget  int         `json:"budget"`
}

type mineJSON struct {
	Role     string      `json:"role"`
	Pinned   bool        `json:"pinned"`
	Archived bool        `json:"archived"`
	Notify   chat.Notify `json:"notify"`
	FromSeq  int64       `json:"from_seq"`
}

type conversationJSON struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"`
	Private  bool          `json:"private"`
	Members  []memberJSON  `json:"members"`
	Settings *settingsJSON `json:"settings,omitempty"`
	Mine     mineJSON      `json:"mine"`
	LastSeq  int64         `json:"last_seq"`
	ReadSeq  int64         `json:"read_seq"`
	Unread   *int          `json:"unread,omitempty"` // in lists
	Snippet  string        `json:"snippet,omitempty"`
	// Of one that began as a copy of another.
	BranchedFrom string `json:"branched_from,omitempty"`
	BranchedSeq  int64  `json:"branched_seq,omitempty"`
	CreatedAt    string `json:"created_at"`
	UpdatedAt    string `json:"updated_at"`
}

func newConversationJSON(c chat.Conversation) conversationJSON {
	j := conversationJSON{ID: c.ID, Title: c.Title, Private: c.Private(), Members: newMembersJSON(c.Members), LastSeq: c.LastSeq, ReadSeq: c.ReadSeq, Snippet: c.Snippet,
		Mine:         mineJSON{c.Mine.Role, c.Mine.Pinned, c.Mine.Archived, c.Mine.Notify, c.Mine.FromSeq},
		BranchedFrom: c.BranchedFrom, BranchedSeq: c.BranchedSeq, CreatedAt: stamp(c.CreatedAt), UpdatedAt: stamp(c.UpdatedAt)}
	if s := c.Settings; s.Speaks != "" {
		j.Settings = &settingsJSON{Speaks: s.Speaks, Past: s.Past, Hops: s.Hops, Turns: s.Turns, Budget: s.Budget}
		for _, m := range c.Agents() {
			if m.ID == s.SpeakerID {
				j.Settings.Speaker = m.Handle
			}
		}
	}
	return j
}

// apiConversations lists the actor's conversations: those that are not
// archived, or with ?filter= the pinned or the archived ones.
func (d *Door) apiConversations(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := number(r, "limit", 50)
	if err != nil {
		return err
	}
	f := chat.RoomFilter{Limit: int(limit)}
	if f.Before, err = parsePoint(r.URL.Query().Get("cursor")); err != nil {
		return err
	}
	switch r.URL.Query().Get("filter") {
	case "":
	case "pinned":
		f.Pinned = true
	case "archived":
		f.Archived = true
	default:
		return fault.Field("filter", "use pinned or archived")
	}
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to see your conversations.")
	}
	list, err := d.chat.List(r.Context(), actor, f)
	if err != nil {
		return err
	}
	out := make([]conversationJSON, len(list))
	for i, c := range list {
		out[i] = newConversationJSON(c)
		out[i].Unread = &list[i].Unread
	}
	next := ""
	if len(list) == f.Limit {
		last := list[len(list)-1]
		next = pointCursor(chat.Point{At: last.UpdatedAt, ID: last.ID})
	}
	writeJSON(w, http.StatusOK, map[string]any{"conversations": out, "next_cursor": next})
	return nil
}

// searched is how many messages a search finds at once.
const searched = 20

type foundJSON struct {
	ConversationID string      `json:"conversation_id"`
	Title          string      `json:"title"`
	Snippet        string      `json:"snippet"`
	Message        messageJSON `json:"message"`
}

// apiSearchMessages finds messages in the actor's conversations.
func (d *Door) apiSearchMessages(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := number(r, "limit", searched)
	if err != nil {
		return err
	}
	before, err := parsePoint(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to search in your conversations.")
	}
	list, err := d.chat.Search(r.Context(), actor, r.URL.Query().Get("q"), before, int(limit))
	if err != nil {
		return err
	}
	out := make([]foundJSON, len(list))
	for i, f := range list {
		out[i] = foundJSON{f.ConversationID, f.Title, f.Snippet, newMessageJSON(f.Message)}
	}
	writeJSON(w, http.StatusOK, map[string]any{"results": out, "next_cursor": foundCursor(list, int(limit))})
	return nil
}

// foundCursor leads from a full page of what a search found to the next one.
func foundCursor(list []chat.Found, limit int) string {
	if len(list) == 0 || len(list) < limit {
		return ""
	}
	last := list[len(list)-1].Message
	return pointCursor(chat.Point{At: last.CreatedAt, ID: last.ID})
}

type conversationBody struct {
	Title   string   `json:"title"`
	Members []string `json:"members"`
}

func (d *Door) apiCreateConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in conversationBody
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
	created(w, c)
	return nil
}

// created answers with a conversation that there was not before.
func created(w http.ResponseWriter, c chat.Conversation) {
	w.Header().Set("Location", "/api/v1/conversations/"+c.ID)
	writeJSON(w, http.StatusCreated, newConversationJSON(c))
}

func (d *Door) apiConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c, err := d.chat.Get(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, newConversationJSON(c))
	return nil
}

type roomBody struct {
	Title    *string      `json:"title"`
	Speaks   *chat.Speaks `json:"speaks"`
	Speaker  *string      `json:"speaker"`
	Past     *chat.Past   `json:"past"`
	Hops     *int         `json:"hops"`
	Turns    *int         `json:"turns"`
	Budget   *int         `json:"budget"`
	Pinned   *bool        `json:"pinned"`
	Archived *bool        `json:"archived"`
	Notify   *chat.Notify `json:"notify"`
}

// apiSetConversation changes the room's settings or the actor's own; what is
// not named stays as it is.
func (d *Door) apiSetConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in roomBody
	if err := decode(w, r, &in); err != nil {
		return err
	}
	c, err := d.chat.Set(r.Context(), actor, chi.URLParam(r, "id"), chat.Change{Title: in.Title, Speaks: in.Speaks, Speaker: in.Speaker, Past: in.Past,
		Hops: in.Hops, Turns: in.Turns, Budget: in.Budget, Pinned: in.Pinned, Archived: in.Archived, Notify: in.Notify})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, newConversationJSON(c))
	return nil
}

func (d *Door) apiDeleteConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return nothing(w, d.chat.Delete(r.Context(), actor, chi.URLParam(r, "id")))
}

// nothing answers what was done and has nothing to say.
func nothing(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

type readBody struct {
	Seq int64 `json:"seq"`
}

func (d *Door) apiMarkRead(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in readBody
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.Seq < 0 {
		return fault.Field("seq", "must not be negative")
	}
	return nothing(w, d.chat.Read(r.Context(), actor, chi.URLParam(r, "id"), in.Seq))
}

func (d *Door) apiStop(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	n, err := stopAnswers(r.Context(), d.chat, d.tasks, actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"stopped": n})
	return nil
}

// stopAnswers ends whatever is answering in a conversation the actor may write in.
func stopAnswers(ctx context.Context, chats *chat.Service, tasks *task.Service, actor ident.Actor, id string) (int, error) {
	if !actor.May(ident.ChatWrite) {
		return 0, fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.ChatWrite)
	}
	c, err := chats.Get(ctx, actor, id)
	if err != nil {
		return 0, err
	}
	if roleIn(actor, c) == chat.RoleReader {
		return 0, fault.New(fault.Forbidden, "You may only read here, not stop what others asked for.")
	}
	return tasks.StopConversation(ctx, actor, id)
}
