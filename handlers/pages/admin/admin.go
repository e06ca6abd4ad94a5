// Package admin has the pages about the network of portals and those of the
// operator.
package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/internal/agentkind"
	"agentsite/internal/attention"
	"agentsite/internal/diskuse"
	"agentsite/internal/doctor"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/figures"
	"agentsite/internal/halt"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/models"
	"agentsite/internal/quota"
	"agentsite/internal/scheduler"
	"agentsite/templates"
)

// Pages are the pages about the network and those of the operator. Create them
// with New.
type Pages struct {
	portal   address.Portal
	accounts *account.Service
	hub      *hub.Service
	peers    *federation.Peers
	stats    Stats
	queue    Queue
	halts    *halt.Service
	examiner Examiner
	settings *adjust.Service
	models   *models.Service
	servers  ModelServers
	site     *pages.Site
	// attention lists the matters that wait, figures has the numbers of each day.
	attention *attention.Service
	figures   *figures.Service
	teams     Teams
}

// Config holds the parts of a portal that the pages need.
type Config struct {
	Portal   address.Portal
	Accounts *account.Service
	Hub      *hub.Service
	Peers    *federation.Peers
	Stats    Stats
	Queue    Queue
	Halts    *halt.Service
	Settings *adjust.Service
	Models   *models.Service
	// ModelServers asks a server of models before its model is stored.
	ModelServers ModelServers
	Site         *pages.Site
	// Attention lists the matters that wait for the operator, Figures has the numbers of each day.
	Attention *attention.Service
	Figures   *figures.Service
	// Teams is nil if the portal has no goals.
	Teams Teams
}

// Teams returns the number of tasks that run or wait to run for the actor's goals at agents of each other portal, by its
// id.
type Teams interface {
	WorkByPortal(ctx context.Context, actor ident.Actor) (map[string]int, error)
}

// Queue returns the state of the queue of tasks, with names for people. Only the operator may read it.
type Queue interface {
	Queue(ctx context.Context, actor ident.Actor) (scheduler.Snapshot, error)
}

// ModelServers asks the servers of models.
type ModelServers interface {
	// AskModel returns a fault with the field url, key or model if the server does not answer, refuses the key or does
	// not list the model with that name. It makes no model work.
	AskModel(ctx context.Context, server models.Server, model string) error
}

// Examiner answers the operator's questions about this portal from its state.
type Examiner interface {
	Examine(ctx context.Context, q doctor.Question) (doctor.Report, error)
}

// New returns the pages about the network and for the operator. Their routes are declared by Routes.
func New(cfg Config, examiner Examiner) *Pages {
	return &Pages{portal: cfg.Portal, accounts: cfg.Accounts, hub: cfg.Hub, peers: cfg.Peers, stats: cfg.Stats,
		queue: cfg.Queue, halts: cfg.Halts, examiner: examiner, settings: cfg.Settings, models: cfg.Models, servers: cfg.ModelServers,
		site: cfg.Site, attention: cfg.Attention, figures: cfg.Figures, teams: cfg.Teams}
}

const adminPage = 100

// operatorOnly refuses actors other than operators. It is for pages whose data needs no service call that
// would refuse them.
func operatorOnly(h request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		if !actor.IsPerson() {
			return fault.New(fault.Unauthenticated, "Log in as the operator.")
		}
		if !actor.IsOperator() {
			return fault.New(fault.Forbidden, "Only the operator of this portal may see that.")
		}
		return h(w, r, actor)
	}
}

// withOperator refuses all requests on a portal without an operator, because logging in leads nowhere there.
func withOperator(d *Pages, h request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		has, err := d.accounts.HasOperator(r.Context())
		if err == nil && !has {
			err = fault.New(fault.Forbidden,
				"This portal has no operator yet. Open the link that it printed when it started; each start prints a new one.")
		}
		if err != nil {
			return err
		}
		return h(w, r, actor)
	}
}

// changing is operatorOnly for a request that changes something, so that the matters are examined anew after it.
func changing(d *Pages, h request.Handler) http.HandlerFunc {
	return d.site.Page(operatorOnly(func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		d.attention.Renew()
		defer d.attention.Renew()
		return h(w, r, actor)
	}))
}

// showAdmin renders a page of the operator with the number of matters on each tab.
func (d *Pages) showAdmin(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.AdminView) error {
	if v.Due == nil {
		items, err := d.attention.List(r.Context(), actor)
		if err != nil {
			return err
		}
		v.Due = dueByTab(items)
	}
	return d.site.Render(w, r, code, templates.Admin(d.site.Frame(r, actor, "Admin"), v))
}

func (d *Pages) people(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showPeople(w, r, actor, http.StatusOK, templates.AdminPeople{})
}

func (d *Pages) showPeople(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.AdminPeople) error {
	q := r.URL.Query()
	v.Query = strings.ToLower(strings.TrimSpace(q.Get("q")))
	after := q.Get("after")
	if after == "" && v.Query != "" {
		after = before(v.Query)
	}
	list, err := d.accounts.List(r.Context(), actor, after)
	if err != nil {
		return err
	}
	agents := make(map[string]int)
	if err := d.hub.Each(r.Context(), actor, func(a hub.Agent) bool { agents[a.OwnerID]++; return true }); err != nil {
		return err
	}
	for _, a := range list {
		if !strings.HasPrefix(a.Name, v.Query) {
			continue
		}
		v.Rows = append(v.Rows, templates.PersonRow{Name: a.Name, Operator: a.Operator, Disabled: a.Disabled(),
			Me: a.ID == actor.ID, Agents: agents[a.ID], Created: pages.FormatMoment(a.CreatedAt)})
	}
	if n := len(list); n == adminPage && strings.HasPrefix(list[n-1].Name, v.Query) {
		more := url.Values{"after": {list[n-1].Name}}
		if v.Query != "" {
			more.Set("q", v.Query)
		}
		v.MoreHref = "/admin/people?" + more.Encode()
	}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "people", People: &v})
}

// before returns a string that sorts before every name with the prefix and after every smaller name, so
// that a list after it begins with the prefix. prefix must not be empty.
func before(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string(rune(prefix[last]-1)) + "~"
}

func (d *Pages) resetPerson(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	name := request.PathName(r)
	link, err := d.accounts.ResetLink(r.Context(), actor, name)
	if err != nil {
		return err
	}
	return d.showPeople(w, r, actor, http.StatusOK, templates.AdminPeople{ResetName: name, ResetLink: link})
}

func (d *Pages) disablePerson(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.accounts.Disable(r.Context(), actor, request.PathName(r)); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/admin/people")
}

func (d *Pages) enablePerson(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.accounts.Enable(r.Context(), actor, request.PathName(r)); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/admin/people")
}

func (d *Pages) invites(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showInvites(w, r, actor, http.StatusOK, templates.AdminInvites{})
}

func (d *Pages) showInvites(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.AdminInvites) error {
	list, err := d.accounts.Invitations(r.Context(), actor)
	if err != nil {
		return err
	}
	for _, c := range list {
		v.Rows = append(v.Rows, inviteRow(c))
	}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "invites", Invites: &v})
}

func inviteRow(c account.Credential) templates.InviteRow {
	return templates.InviteRow{ID: c.ID, Note: c.Label, By: "the operator", Created: pages.FormatMoment(c.CreatedAt),
		Expires: pages.FormatMoment(c.ExpiresAt)}
}

func (d *Pages) createInvite(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	v := templates.AdminInvites{Note: strings.TrimSpace(in.Get("note"))}
	secret, err := d.accounts.Invitation(r.Context(), actor, v.Note)
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		if m := messages["label"]; m != "" {
			delete(messages, "label")
			messages["note"] = m
		}
		v.Errors = messages
		return d.showInvites(w, r, actor, code, v)
	}
	return d.showInvites(w, r, actor, http.StatusOK,
		templates.AdminInvites{NewLink: d.portal.URL + "/signup?invite=" + secret})
}

func (d *Pages) revokeInvite(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.accounts.RevokeInvitation(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/admin/invites")
}

// adminAgents shows the operator every agent, including private and withdrawn ones.
func (d *Pages) adminAgents(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q := r.URL.Query()
	v := templates.AdminAgents{Query: strings.TrimSpace(q.Get("q"))}
	words, after, last := strings.ToLower(v.Query), q.Get("after"), ""
	err := d.hub.Each(r.Context(), actor, func(a hub.Agent) bool {
		if a.ID <= after || !strings.Contains(strings.ToLower(a.Name+" "+a.Title+" "+a.OwnerName), words) {
			return true
		}
		if len(v.Rows) == adminPage {
			more := url.Values{"after": {last}}
			if v.Query != "" {
				more.Set("q", v.Query)
			}
			v.MoreHref = "/admin/agents?" + more.Encode()
			return false
		}
		v.Rows = append(v.Rows, templates.AdminAgentRow{Ref: a.Name, Title: a.Title, Owner: a.OwnerName,
			Kind: agentkind.Of(a.Kind).Label, Visibility: string(a.Visibility),
			Provenance: d.site.Provenance(a), Withdrawn: a.Status.State == hub.Withdrawn,
			Builtin: a.Kind == hub.Builtin, Updated: pages.FormatMoment(a.UpdatedAt)})
		last = a.ID
		return r.Context().Err() == nil
	})
	if err != nil {
		return err
	}
	return d.showAdmin(w, r, actor, http.StatusOK, templates.AdminView{Tab: "agents", Agents: &v})
}

// Routes declares the routes of the pages about the network and of the operator's pages.
func (d *Pages) Routes(r chi.Router) {
	r.Get("/network", d.site.Page(d.network))
	r.Get("/network/{peer}", d.site.Page(d.portalPage))
	r.Get("/admin", d.site.Page(withOperator(d, operatorOnly(d.overview))))
	r.Post("/admin/examine", d.site.Page(operatorOnly(d.examineAll)))
	r.Get("/admin/people", d.site.Page(operatorOnly(d.people)))
	r.Post("/admin/people/{name}/reset", changing(d, d.resetPerson))
	r.Post("/admin/people/{name}/disable", changing(d, d.disablePerson))
	r.Post("/admin/people/{name}/enable", changing(d, d.enablePerson))
	r.Get("/admin/invites", d.site.Page(operatorOnly(d.invites)))
	r.Post("/admin/invites", changing(d, d.createInvite))
	r.Post("/admin/invites/{id}/revoke", changing(d, d.revokeInvite))
	r.Get("/admin/agents", d.site.Page(operatorOnly(d.adminAgents)))
	r.Post("/admin/agents/{name}/withdraw", changing(d, d.withdrawAgent))
	r.Post("/admin/agents/{name}/restore", changing(d, d.restoreAgent))
	r.Get("/admin/queue", d.site.Page(operatorOnly(d.showQueue)))
	r.Post("/admin/queue/stop", changing(d, d.stopOrResume))
	r.Get("/admin/storage", d.site.Page(operatorOnly(d.storage)))
	r.Get("/admin/reports", d.site.Page(operatorOnly(d.reports)))
	r.Post("/admin/reports/{id}/close", changing(d, d.closeReport))
	d.declarePeers(r)
	d.declareSettings(r)
}

// Stats returns counts of stored rows and bytes for the operator's pages.
type Stats interface {
	Stats(ctx context.Context) (map[string]int64, error)
	// GreatestStorage returns the owners of a kind with the most stored bytes, the greatest first.
	GreatestStorage(ctx context.Context, kind quota.Kind, limit int) ([]quota.Owner, error)
	// DiskUse returns the stored bytes by the kind of data.
	DiskUse(ctx context.Context) ([]diskuse.Kind, error)
	// FreeDisk returns the free bytes of the disk; ok is false if they are not known.
	FreeDisk() (free int64, ok bool)
}
