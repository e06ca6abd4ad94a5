package account

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
	"agentsite/templates"
)

func (d *Pages) listGrants(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return respond.SeeOther(w, r, "/login?next="+url.QueryEscape("/account/grants"))
	}
	v := templates.GrantsView{Agent: r.URL.Query().Get("agent"), Tool: grant.Ask}
	return d.showGrants(w, r, actor, http.StatusOK, v)
}

func (d *Pages) showGrants(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.GrantsView) error {
	list, err := d.grants.List(r.Context(), actor)
	if err != nil {
		return err
	}
	now := clock.Now()
	for _, g := range list {
		row := templates.GrantRow{ID: g.ID, Agent: g.Agent, Act: g.Act(), Allow: g.Allow,
			ChatID: g.ConversationID, Calls: g.Calls, Used: g.Used, Until: pages.FormatMoment(g.Until),
			Since: pages.FormatMoment(g.CreatedAt),
			Ended: g.Ended(now), Lapsed: g.Lapsed}
		if g.ConversationID != "" {
			if c, err := d.chat.Get(r.Context(), actor, g.ConversationID); err == nil {
				row.Chat = c.Title
			}
		}
		v.Grants = append(v.Grants, row)
	}
	p := d.site.Frame(r, actor, "What agents may do for you")
	if r.Method == http.MethodGet {
		p.Flash = map[string]string{"saved": "Saved.",
			"deleted": "Taken back. The agent asks you again."}[r.URL.Query().Get("done")]
	}
	return d.site.Render(w, r, code, templates.Grants(p, v))
}

func (d *Pages) addGrant(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v := templates.GrantsView{Agent: strings.TrimSpace(in.Get("agent")), Tool: strings.TrimSpace(in.Get("tool")),
		Scope: strings.TrimSpace(in.Get("scope")), Calls: strings.TrimSpace(in.Get("budget")), Until: in.Get("until")}
	draft := grant.Draft{Agent: strings.TrimPrefix(v.Agent, "@"), Tool: v.Tool,
		Target: v.Scope, Allow: in.Get("decision") != "deny"}
	if v.Tool == grant.Ask {
		// An agent may be written as in a message; a path or a tool may begin with an @ of its own.
		draft.Target = strings.TrimPrefix(v.Scope, "@")
	}
	var c fault.Check
	if v.Calls != "" {
		draft.Calls, err = strconv.Atoi(v.Calls)
		c.Field(err == nil && draft.Calls > 0, "budget", "use a number, or leave it empty")
	}
	if v.Until != "" {
		draft.Until, err = time.Parse(time.DateOnly, v.Until)
		c.Field(err == nil, "until", "use a date")
	}
	if err = c.Err(); err == nil {
		_, err = d.grants.Put(r.Context(), actor, ident.NewID(), draft)
	}
	if err == nil {
		return respond.SeeOther(w, r, "/account/grants?done=saved")
	}
	if fault.Is(err, fault.NotFound) {
		err = fault.Field("agent", fault.As(err).Safe)
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	v.Errors = messages
	return d.showGrants(w, r, actor, code, v)
}

func (d *Pages) deleteGrant(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.grants.Delete(r.Context(), actor, request.PathParam(r, "id")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account/grants?done=deleted")
}
