package agents

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/work"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// ownerDone maps ?done= to the confirmation that the owner's page shows after a form.
var ownerDone = map[string]string{
	"shared":   "It is shared.",
	"unshared": "It is no longer shared with them.",
	"offered":  "It is offered. You get a notification when they answer.",
	"kept":     "The offer is taken back.",
	"proved":   "The proof was found: its page says so now.",
	"status":   "The status is set.",
	"sites":    "The sites that may show it are set.",
	"yours":    "It is yours now. Check its settings.",
}

func (d *Owner) manageable(r *http.Request, actor ident.Actor) (hub.Agent, error) {
	return work.Manageable(d.hub, r, actor)
}

func (d *Owner) ownerPage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showOwner(w, r, actor, http.StatusOK, templates.OwnerView{})
}

// showOwner renders the owner's page. v holds rejected values of a form and their errors.
func (d *Owner) showOwner(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.OwnerView) error {
	a, err := d.manageable(r, actor)
	if err != nil {
		return err
	}
	v.Ref, v.Title, v.Icon, v.Owner, v.Me = a.Name, a.Title, a.Icon, a.OwnerName, actor.Name
	v.MayGive, v.Limits = a.MayGive(actor), d.profile.limitTexts(a)
	shared, err := d.hub.CoOwners(r.Context(), actor, a.Name)
	if err != nil {
		return err
	}
	for _, o := range shared {
		v.CoOwners = append(v.CoOwners, o.Name)
		v.CoOwner = v.CoOwner || o.ID == actor.ID
	}
	to, offered, err := d.hub.Offered(r.Context(), actor, a.Name)
	if err != nil {
		return err
	}
	if offered {
		v.OfferedTo = to.Name
	}
	v.Proof, v.Network = d.proofView(actor, a), d.publicationView(a)
	v.Embed = d.embedSettings(a, v.Embed)
	typed := v.Status.State != ""
	v.Status.Held, v.Status.MayRestore = a.Status.Held, actor.IsOperator()
	if !typed || v.Status.Held {
		v.Status.State, v.Status.Message = a.Status.State, a.Status.Message
	}
	p := d.site.Frame(r, actor, "Manage "+a.Title)
	p.Flash = ownerDone[r.URL.Query().Get("done")]
	return d.site.Render(w, r, code, templates.Owner(p, v))
}

// proofView returns how the owner can prove control of the agent's address. Only the main owner gets the
// token.
func (d *Owner) proofView(actor ident.Actor, a hub.Agent) templates.ProofView {
	v := templates.ProofView{State: a.Proof.State, Text: proofText(a), Card: a.Kind == hub.A2A,
		Checked: pages.FormatMoment(a.Proof.At)}
	v.Address = strings.TrimSuffix(api.Origin(a.Endpoint), "/") + hub.ProofPath
	if a.OwnerID == actor.ID {
		v.Token = d.hub.Proofs.OwnerToken(actor)
	}
	return v
}

// ownerAgain shows the owner's page again with the error of a form. field is the form field that shows
// the message.
func (d *Owner) ownerAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, v templates.OwnerView,
	field string, err error) error {
	// Without the permission the page itself cannot be shown, so the error is returned.
	if _, merr := d.manageable(r, actor); merr != nil {
		return err
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) {
		return err
	}
	v.Errors = templates.FieldErrors{field: pages.FirstError(messages, "account", "status", "status.message", field,
		"")}
	return d.showOwner(w, r, actor, code, v)
}

// ownerChange returns a handler that reads a form and calls change, then redirects to the address that
// change returns, by default the owner's page with ?done=. After an error it shows the page again with
// the view that typed returns.
func (d *Owner) ownerChange(field, done string, typed func(in map[string]string) templates.OwnerView,
	change func(r *http.Request, actor ident.Actor, name string, in map[string]string) (string,
		error)) request.Handler {
	return func(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
		posted, err := request.Form(w, r)
		if err != nil {
			return err
		}
		in := make(map[string]string, len(posted))
		for name := range posted {
			in[name] = strings.TrimSpace(request.NormalizeLines(posted.Get(name)))
		}
		name := request.PathName(r)
		to, err := change(r, actor, name, in)
		if err != nil {
			return d.ownerAgain(w, r, actor, typed(in), field, err)
		}
		if to == "" {
			to = "/agents/" + name + "/owner?done=" + done
		}
		return respond.SeeOther(w, r, to)
	}
}

// declareRoutes declares the routes of the pages of an agent that only its owners see.
func (d *Owner) declareRoutes(r chi.Router) {
	r.Get("/agents/{name}/owner", d.site.Page(d.ownerPage))
	r.Post("/agents/{name}/owners", d.site.Page(d.shareAgent()))
	r.Post("/agents/{name}/owners/remove", d.site.Page(d.unshareAgent()))
	r.Post("/agents/{name}/offer", d.site.Page(d.offerAgent()))
	r.Post("/agents/{name}/answer", d.site.Page(d.answerOffer))
	r.Post("/agents/{name}/prove", d.site.Page(d.proveAgent()))
	r.Post("/agents/{name}/status", d.site.Page(d.setStatus()))
	r.Post("/agents/{name}/delete", d.site.Page(d.deleteAgent()))
	r.Post("/agents/{name}/sites", d.site.Page(d.embedSites()))
}
