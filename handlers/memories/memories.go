// Package memories has the API routes and the page of the memories of agents about a person.
package memories

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/memory"
	"agentsite/templates"
)

// Handlers answers the routes. Create it with New.
type Handlers struct {
	memories *memory.Service
	grants   *grant.Service
	hub      *hub.Service
	sessions *request.Sessions
	site     *pages.Site
}

// New returns handlers over the services.
func New(m *memory.Service, g *grant.Service, directory *hub.Service, s *request.Sessions, site *pages.Site) *Handlers {
	return &Handlers{m, g, directory, s, site}
}

// API declares the routes below /api/v1.
func (h *Handlers) API(r chi.Router) {
	r.Get("/memories", h.sessions.API(h.listMemories))
	r.Delete("/memories", h.sessions.API(h.deleteMemories))
	r.Patch("/memories/{id}", h.sessions.API(h.patchMemory))
	r.Delete("/memories/{id}", h.sessions.API(h.deleteMemory))
}

// Pages declares the routes of the page.
func (h *Handlers) Pages(r chi.Router) {
	r.Get("/account/memories", h.site.Page(h.showMemories))
	r.Post("/account/memories/decide", h.site.Page(h.saveDecision))
	r.Post("/account/memories/erase", h.site.Page(h.eraseAll))
	r.Post("/account/memories/{id}", h.site.Page(h.editOne))
	r.Post("/account/memories/{id}/delete", h.site.Page(h.eraseOne))
}

// MemoryJSON is a memory.
type MemoryJSON struct {
	ID     string     `json:"id"`
	Agent  string     `json:"agent"`
	Text   string     `json:"text"`
	Source SourceJSON `json:"source"`
	// Conversation is set for a memory of a conversation with more members.
	Conversation string `json:"conversation,omitempty"`
	CreatedAt    string `json:"created_at"`
	UsedAt       string `json:"used_at"`
}

// SourceJSON is where the person said it. By is "agent" if the agent wrote it by its tool, "model" if a model took it
// from the conversation.
type SourceJSON struct {
	Conversation string `json:"conversation"`
	Seq          int64  `json:"seq"`
	By           string `json:"by"`
}

func toJSON(m memory.Memory) MemoryJSON {
	by := "agent"
	if m.Distilled {
		by = "model"
	}
	return MemoryJSON{ID: m.ID, Agent: m.Agent, Text: m.Text, Source: SourceJSON{m.ConversationID, m.Seq, by},
		Conversation: m.RoomID, CreatedAt: respond.FormatTime(m.CreatedAt), UsedAt: respond.FormatTime(m.UsedAt)}
}

// agentOf returns the name of an agent of this portal from a query or form.
func (h *Handlers) agentOf(s string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(s), "@"), "@"+h.hub.Portal())
}

func (h *Handlers) readPage(r *http.Request, actor ident.Actor) (memory.Page, error) {
	limit, err := request.QueryInt(r, "limit", 0)
	if err != nil {
		return memory.Page{}, err
	}
	q := r.URL.Query()
	return h.memories.List(r.Context(), actor, memory.Filter{Agent: h.agentOf(q.Get("agent")), Before: q.Get("cursor"),
		Limit: int(min(limit, 1<<20))}, q.Get("q"))
}

func (h *Handlers) listMemories(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	page, err := h.readPage(r, actor)
	if err != nil {
		return err
	}
	out := make([]MemoryJSON, len(page.Memories))
	for i, m := range page.Memories {
		out[i] = toJSON(m)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"memories": out, "next_cursor": page.Next})
	return nil
}

// EditBody gives a memory another text.
type EditBody struct {
	Text string `json:"text"`
}

func (h *Handlers) patchMemory(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in EditBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	m, err := h.memories.Edit(r.Context(), actor, request.PathParam(r, "id"), in.Text)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, toJSON(m))
	return nil
}

func (h *Handlers) deleteMemory(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	err := h.memories.Delete(r.Context(), actor, request.PathParam(r, "id"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (h *Handlers) deleteMemories(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	n, err := h.memories.DeleteAll(r.Context(), actor, h.agentOf(r.URL.Query().Get("agent")))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, map[string]any{"deleted": n})
	return nil
}

func pageOf(agent string) string {
	if agent == "" {
		return "/account/memories"
	}
	return "/account/memories?agent=" + url.QueryEscape(agent)
}

func (h *Handlers) showMemories(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return respond.SeeOther(w, r, "/login?next="+url.QueryEscape(pageOf(r.URL.Query().Get("agent"))))
	}
	page, err := h.readPage(r, actor)
	if err != nil {
		return err
	}
	return h.renderPage(w, r, actor, http.StatusOK, page, templates.MemoriesView{})
}

// renderPage renders a page of memories. v may have the text of a refused edit and its errors.
func (h *Handlers) renderPage(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, page memory.Page,
	v templates.MemoriesView) error {
	q := r.URL.Query()
	v.Agent, v.Query = h.agentOf(q.Get("agent")), strings.TrimSpace(q.Get("q"))
	for _, m := range page.Memories {
		row := templates.MemoryRow{ID: m.ID, Agent: m.Agent, Text: m.Text, Distilled: m.Distilled,
			Room: m.RoomID != "", ChatID: m.ConversationID, Seq: int(m.Seq), Since: pages.FormatMoment(m.CreatedAt)}
		if row.ID == v.EditID {
			row.Text = v.EditText
		}
		v.Memories = append(v.Memories, row)
	}
	if page.Next != "" {
		next := url.Values{"cursor": {page.Next}}
		if v.Agent != "" {
			next.Set("agent", v.Agent)
		}
		v.Next = "/account/memories?" + next.Encode()
	}
	if v.Agent != "" {
		if err := h.fillDecision(r, actor, &v); err != nil {
			return err
		}
	}
	p := h.site.Frame(r, actor, "What agents remember of you")
	if r.Method == http.MethodGet {
		p.Flash = map[string]string{"saved": "Saved.", "erased": "Erased.",
			"decided": "Saved. You can change it here at any time.",
			"all":     "Erased. It may still stand in conversations, where you can delete it."}[q.Get("done")]
	}
	return h.site.Render(w, r, code, templates.Memories(p, v))
}

// fillDecision adds the person's decision about the agent, and the hosts that would read its memories. An agent that
// the person cannot call gets none.
func (h *Handlers) fillDecision(r *http.Request, actor ident.Actor, v *templates.MemoriesView) error {
	a, err := h.hub.Callable(r.Context(), actor, v.Agent)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Conflict) {
		return nil
	}
	if err != nil {
		return err
	}
	if a.Elsewhere() || !memory.CanRemember(string(a.Kind), a.Config) {
		v.None = true
		return nil
	}
	list, err := h.grants.List(r.Context(), actor)
	if err != nil {
		return err
	}
	v.Known, v.Decision, v.Reader = true, "ask", h.hub.TextGoesTo(a)
	for _, g := range list {
		if g.AgentID != a.ID || g.Tool != grant.Memory || g.ConversationID != "" {
			continue
		}
		v.Lapsed = g.Lapsed
		switch {
		case !g.Allow:
			v.Decision = "deny"
		case g.Lapsed == "":
			v.Decision = "allow"
		}
	}
	return nil
}

// saveDecision turns the memory of an agent on or off, or lets the agent ask again.
func (h *Handlers) saveDecision(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	agent := h.agentOf(in.Get("agent"))
	switch in.Get("decision") {
	case "allow", "deny":
		_, err = h.grants.Put(r.Context(), actor, ident.NewID(), grant.Draft{Agent: agent, Tool: grant.Memory,
			Allow: in.Get("decision") == "allow"})
	case "ask":
		err = h.askAgain(r, actor, agent)
	default:
		err = fault.Field("decision", "use allow, deny or ask")
	}
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, pageOf(agent)+"&done=decided")
}

// askAgain takes back the decision about an agent that holds in all conversations.
func (h *Handlers) askAgain(r *http.Request, actor ident.Actor, agent string) error {
	list, err := h.grants.List(r.Context(), actor)
	if err != nil {
		return err
	}
	for _, g := range list {
		if g.Agent == agent && g.Tool == grant.Memory && g.ConversationID == "" {
			if err := h.grants.Delete(r.Context(), actor, g.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *Handlers) editOne(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	id := request.PathParam(r, "id")
	m, err := h.memories.Edit(r.Context(), actor, id, in.Get("text"))
	if err == nil {
		return respond.SeeOther(w, r, withDone(m.Agent, "saved", id))
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || m.ID == "" {
		return err
	}
	// Only this memory is shown, because a page of the newest ones might be without it, and lose the text.
	return h.renderPage(w, r, actor, code, memory.Page{Memories: []memory.Memory{m}},
		templates.MemoriesView{EditID: id, EditText: in.Get("text"), Errors: messages})
}

// withDone returns the page of an agent's memories with a confirmation.
func withDone(agent, done, id string) string {
	to := pageOf(agent) + "&done=" + done
	if id != "" {
		to += "#memory-" + id
	}
	return to
}

func (h *Handlers) eraseOne(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := h.memories.Delete(r.Context(), actor, request.PathParam(r, "id")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account/memories?done=erased")
}

func (h *Handlers) eraseAll(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	agent := h.agentOf(in.Get("agent"))
	if _, err := h.memories.DeleteAll(r.Context(), actor, agent); err != nil {
		return err
	}
	return respond.SeeOther(w, r, withDone(agent, "all", ""))
}
