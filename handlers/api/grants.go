package api

import (
	"net/http"
	"time"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
)

type grantJSON struct {
	ID           string           `json:"id"`
	Agent        string           `json:"agent"`
	Tool         string           `json:"tool"`
	Scope        string           `json:"scope"`
	Conversation string           `json:"conversation,omitempty"`
	Budget       *grantBudgetJSON `json:"budget,omitempty"`
	Used         int              `json:"used"`
	Until        string           `json:"until,omitempty"`
	Decision     string           `json:"decision"`
	Binds        grantBindsJSON   `json:"binds"`
	Lapsed       string           `json:"lapsed,omitempty"`
	CreatedAt    string           `json:"created_at"`
}

// grantBudgetJSON is the number of calls that a grant allows.
type grantBudgetJSON struct {
	Calls int `json:"calls"`
}

type grantBindsJSON struct {
	Owner  string `json:"owner"`
	Origin string `json:"origin"`
}

func newGrantJSON(g grant.Listed) grantJSON {
	j := grantJSON{ID: g.ID, Agent: g.Agent, Tool: g.Tool, Scope: g.Target, Conversation: g.ConversationID,
		Used: g.Used, Until: respond.FormatTime(g.Until), Decision: "deny",
		Binds:  grantBindsJSON{g.Binds.Owner, g.Binds.Origin},
		Lapsed: g.Lapsed, CreatedAt: respond.FormatTime(g.CreatedAt)}
	if g.Allow {
		j.Decision = "allow"
	}
	if g.Calls > 0 {
		j.Budget = &grantBudgetJSON{g.Calls}
	}
	return j
}

func (d *accountAPI) apiGrants(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.grants.List(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]grantJSON, len(list))
	for i, g := range list {
		out[i] = newGrantJSON(g)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"grants": out, "next_cursor": ""})
	return nil
}

type grantBody struct {
	Agent        string           `json:"agent"`
	Tool         string           `json:"tool"`
	Scope        string           `json:"scope"`
	Conversation string           `json:"conversation"`
	Budget       *grantBudgetJSON `json:"budget"`
	Until        *time.Time       `json:"until"`
	Decision     string           `json:"decision"`
}

func (d *accountAPI) apiPutGrant(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in grantBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if in.Decision != "allow" && in.Decision != "deny" {
		return fault.Field("decision", "use allow or deny")
	}
	draft := grant.Draft{Agent: in.Agent, Tool: in.Tool, Target: in.Scope, ConversationID: in.Conversation,
		Allow: in.Decision == "allow"}
	if in.Budget != nil {
		draft.Calls = in.Budget.Calls
	}
	if in.Until != nil {
		draft.Until = *in.Until
	}
	g, err := d.grants.Put(r.Context(), actor, request.PathParam(r, "id"), draft)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newGrantJSON(grant.Listed{Grant: g}))
	return nil
}

func (d *accountAPI) apiDeleteGrant(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return nothing(w, d.grants.Delete(r.Context(), actor, request.PathParam(r, "id")))
}
