package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/edits"
	"agentsite/handlers/files"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
)

// chatAPI has the API's routes about conversations, their files and tasks. Its handlers only decode and
// encode; the services check permissions.
type chatAPI struct {
	portal   address.Portal
	chat     *chat.Service
	tasks    *task.Service
	edits    *edits.Editor
	hooks    *notify.Service
	sessions *request.Sessions
	files    *files.Files
	log      *slog.Logger
}

type memberJSON struct {
	Kind   string `json:"kind"`
	Handle string `json:"handle"`
	Role   string `json:"role"`
	Remote string `json:"remote,omitempty"`
	State  string `json:"state,omitempty"` // invited: a person who has not accepted yet, and is no member
}

func newMemberJSON(m chat.Member) memberJSON {
	j := memberJSON{Kind: m.Kind, Handle: m.Handle, Role: m.Role, Remote: m.Remote}
	if m.InviterID != "" {
		j.State = "invited"
	}
	return j
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
	Speaker string      `json:"speaker,omitempty"` // handle of the agent that answers, if only one does
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

type ConversationJSON struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"`
	Private  bool          `json:"private"`
	Members  []memberJSON  `json:"members"`
	Settings *settingsJSON `json:"settings,omitempty"`
	Mine     mineJSON      `json:"mine"`
	LastSeq  int64         `json:"last_seq"`
	ReadSeq  int64         `json:"read_seq"`
	Unread   *int          `json:"unread,omitempty"` // set in lists of conversations only
	Snippet  string        `json:"snippet,omitempty"`
	// BranchedFrom is the id of the conversation that this one was copied from, "" for none.
	BranchedFrom string `json:"branched_from,omitempty"`
	BranchedSeq  int64  `json:"branched_seq,omitempty"`
	CreatedAt    string `json:"created_at"`
	UpdatedAt    string `json:"updated_at"`
}

func newConversationJSON(c chat.Conversation) ConversationJSON {
	j := ConversationJSON{ID: c.ID, Title: c.Title, Private: c.Private(),
		Members: newMembersJSON(slices.Concat(c.Members, c.Invited)),
		LastSeq: c.LastSeq, ReadSeq: c.ReadSeq, Snippet: c.Snippet,
		Mine:         mineJSON{c.Mine.Role, c.Mine.Pinned, c.Mine.Archived, c.Mine.Notify, c.Mine.FromSeq},
		BranchedFrom: c.BranchedFrom, BranchedSeq: c.BranchedSeq, CreatedAt: respond.FormatTime(c.CreatedAt),
		UpdatedAt: respond.FormatTime(c.UpdatedAt)}
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
func (d *chatAPI) apiConversations(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := request.QueryInt(r, "limit", 50)
	if err != nil {
		return err
	}
	f := chat.RoomFilter{Limit: int(limit)}
	if f.Before, err = request.ParseCursor(r.URL.Query().Get("cursor")); err != nil {
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
	out := make([]ConversationJSON, len(list))
	for i, c := range list {
		out[i] = newConversationJSON(c)
		out[i].Unread = &list[i].Unread
	}
	next := ""
	if len(list) == f.Limit {
		last := list[len(list)-1]
		next = request.FormatCursor(chat.Point{At: last.UpdatedAt, ID: last.ID})
	}
	respond.JSON(w, http.StatusOK, map[string]any{"conversations": out, "next_cursor": next})
	return nil
}

// Searched is the default number of results on a page of a search in messages.
const Searched = 20

type foundJSON struct {
	ConversationID string      `json:"conversation_id"`
	Title          string      `json:"title"`
	Snippet        string      `json:"snippet"`
	Message        MessageJSON `json:"message"`
}

// apiSearchMessages answers with the messages in the actor's conversations that contain the words of ?q=,
// newest first. A guest without a session gets Unauthenticated.
func (d *chatAPI) apiSearchMessages(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := request.QueryInt(r, "limit", Searched)
	if err != nil {
		return err
	}
	before, err := request.ParseCursor(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to search in your conversations.")
	}
	list, more, err := d.chat.Search(r.Context(), actor, r.URL.Query().Get("q"), before, int(limit))
	if err != nil {
		return err
	}
	out := make([]foundJSON, len(list))
	for i, f := range list {
		out[i] = foundJSON{f.ConversationID, f.Title, f.Snippet, NewMessageJSON(f.Message)}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"results": out, "next_cursor": FoundCursor(list, more)})
	return nil
}

// FoundCursor returns the cursor of the page after a page of search results, "" if there is no more.
func FoundCursor(list []chat.Found, more bool) string {
	if len(list) == 0 || !more {
		return ""
	}
	last := list[len(list)-1].Message
	return request.FormatCursor(chat.Point{At: last.CreatedAt, ID: last.ID})
}

type conversationBody struct {
	Title   string   `json:"title"`
	Members []string `json:"members"`
}

func (d *chatAPI) apiCreateConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in conversationBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	actor, err := d.sessions.EnsureGuest(w, r, actor)
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

// created answers 201 with a new conversation and its address in the Location header.
func created(w http.ResponseWriter, c chat.Conversation) {
	w.Header().Set("Location", "/api/v1/conversations/"+c.ID)
	respond.JSON(w, http.StatusCreated, newConversationJSON(c))
}

func (d *chatAPI) apiConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	c, err := d.chat.Get(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newConversationJSON(c))
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

// apiSetConversation changes the settings of the conversation or the actor's own. Missing fields stay unchanged.
func (d *chatAPI) apiSetConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in roomBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	c, err := d.chat.Set(r.Context(), actor, chi.URLParam(r, "id"),
		chat.Change{Title: in.Title, Speaks: in.Speaks, Speaker: in.Speaker, Past: in.Past,
			Hops: in.Hops, Turns: in.Turns, Budget: in.Budget, Pinned: in.Pinned, Archived: in.Archived,
			Notify: in.Notify})
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newConversationJSON(c))
	return nil
}

func (d *chatAPI) apiDeleteConversation(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return nothing(w, d.chat.DeleteConversation(r.Context(), actor, chi.URLParam(r, "id")))
}

// nothing answers 204 to a request without a result, or returns err.
func nothing(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

type readBody struct {
	Seq int64 `json:"seq"`
}

func (d *chatAPI) apiMarkRead(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in readBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if in.Seq < 0 {
		return fault.Field("seq", "must not be negative")
	}
	return nothing(w, d.chat.Read(r.Context(), actor, chi.URLParam(r, "id"), in.Seq))
}

func (d *chatAPI) apiStop(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	n, err := StopAnswers(r.Context(), d.chat, d.tasks, actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, map[string]any{"stopped": n})
	return nil
}

// StopAnswers cancels the running tasks of a conversation and returns their number. It needs the scope
// chat:write and more than the role of a reader.
func StopAnswers(ctx context.Context, chats *chat.Service, tasks *task.Service, actor ident.Actor, id string) (int,
	error) {
	if !actor.May(ident.ChatWrite) {
		return 0, fault.New(fault.Forbidden, "%s", ident.ChatWrite.DescribeMissing())
	}
	c, err := chats.Get(ctx, actor, id)
	if err != nil {
		return 0, err
	}
	if RoleIn(actor, c) == chat.RoleReader {
		return 0, fault.New(fault.Forbidden, "You may only read here, not stop what others asked for.")
	}
	return tasks.StopConversation(ctx, actor, id)
}

// chatAPI declares the routes of conversations.
func (d *chatAPI) chatAPI(r chi.Router) {
	r.Get("/conversations", d.sessions.Listing(d.apiConversations))
	r.Post("/conversations", d.sessions.API(d.apiCreateConversation))
	r.Get("/conversations/search", d.sessions.Listing(d.apiSearchMessages))
	r.Get("/conversations/{id}", d.sessions.API(d.apiConversation))
	r.Patch("/conversations/{id}", d.sessions.API(d.apiSetConversation))
	r.Delete("/conversations/{id}", d.sessions.API(d.apiDeleteConversation))
	r.Get("/conversations/{id}/messages", d.sessions.Listing(d.apiMessages))
	r.Post("/conversations/{id}/messages", d.sessions.API(d.apiPost))
	r.Get("/conversations/{id}/messages/{seq}", d.sessions.API(d.apiMessage))
	r.Patch("/conversations/{id}/messages/{seq}", d.sessions.API(d.apiEdit))
	r.Delete("/conversations/{id}/messages/{seq}", d.sessions.API(d.apiUnsay))
	r.Get("/conversations/{id}/messages/{seq}/edits", d.sessions.Listing(d.apiEdits))
	r.Put("/conversations/{id}/messages/{seq}/reactions/{emoji}", d.sessions.API(d.apiReact))
	r.Delete("/conversations/{id}/messages/{seq}/reactions/{emoji}", d.sessions.API(d.apiReact))
	r.Post("/conversations/{id}/messages/{seq}/again", d.sessions.API(d.apiAgain))
	r.Post("/conversations/{id}/messages/{seq}/ask", d.sessions.API(d.edits.ServeAsk))
	r.Post("/conversations/{id}/branch", d.sessions.API(d.apiBranch))
	r.Post("/conversations/{id}/members", d.sessions.API(d.apiInvite))
	r.Delete("/conversations/{id}/members", d.sessions.API(d.apiRemoveMember))
	r.Patch("/conversations/{id}/members/{handle}", d.sessions.API(d.apiSetRole))
	r.Delete("/conversations/{id}/members/{handle}", d.sessions.API(d.apiRemoveMember))
	r.Get("/conversations/{id}/links", d.sessions.API(d.apiLinks))
	r.Post("/conversations/{id}/links", d.sessions.API(d.apiNewLink))
	r.Delete("/conversations/{id}/links/{link}", d.sessions.API(d.apiDropLink))
	r.Get("/conversations/{id}/disclosures", d.sessions.Listing(d.apiDisclosures))
	r.Post("/conversations/{id}/disclosures", d.sessions.API(d.apiDisclose))
	r.Post("/conversations/{id}/read", d.sessions.API(d.apiMarkRead))
	r.Post("/conversations/{id}/typing", d.sessions.API(d.apiTyping))
	r.Post("/conversations/{id}/stop", d.sessions.API(d.apiStop))
	r.Get("/conversations/{id}/export", d.sessions.API(d.apiExport))
	d.declareInvitations(r)

	r.Get("/join/{secret}", d.sessions.API(d.apiInvitation))
	r.Post("/join/{secret}", d.sessions.API(d.apiJoin))
	r.Get("/shared/{secret}", d.sessions.Listing(d.apiShared))

	r.Post("/files", d.sessions.API(d.apiPutFile))
	r.Get("/files/{hash}", d.sessions.API(d.files.File))
	r.Get("/files/{hash}/preview", d.sessions.API(d.files.FilePreview))
	r.Get("/account/chat", d.sessions.API(d.apiPrefs))
	r.Put("/account/chat", d.sessions.API(d.apiSetPrefs))
}

// IsMe reports whether the member m of a conversation is the actor. An agent never is, even with the same
// id.
func IsMe(actor ident.Actor, m chat.Member) bool { return m.Kind != "agent" && m.ID == actor.ID }

// RoleIn returns the actor's role in a conversation. It falls back to the role in c.Mine, then to member,
// for conversations without a list of members.
func RoleIn(actor ident.Actor, c chat.Conversation) string {
	for _, m := range c.Members {
		if IsMe(actor, m) {
			return m.Role
		}
	}
	return cmp.Or(c.Mine.Role, chat.RoleMember)
}

// apiTyping notifies the other members that the actor is typing, for clients that read server-sent events. A socket
// client sends it over the socket.
func (d *chatAPI) apiTyping(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.chat.Typing(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
