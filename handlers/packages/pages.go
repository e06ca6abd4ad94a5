package packages

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/markup"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hosting"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
	"agentsite/templates"
)

// Directory registers agents; hub.Service implements it.
type Directory interface {
	Agents
	Publish(ctx context.Context, actor ident.Actor, d hub.Draft) (hub.Agent, error)
	Try(ctx context.Context, actor ident.Actor, name string, d hub.Draft, text string) (hub.Tried, error)
}

// PagesConfig holds the parts of a portal that the pages need.
type PagesConfig struct {
	Packages *packages.Service
	Hosting  *hosting.Service
	Hub      Directory
	Peers    *federation.Peers
	Site     *pages.Site
	Markup   *markup.Renderer
	Host     string // of this portal
	Policies Policies
	// Bundled is the hash of the module of the programs that come with the portal, "" for none.
	Bundled string
}

// Policies knows the hosting policies of other portals.
type Policies interface {
	// PoliciesOf returns the policies of portals by host. It asks those that it does not know, for a short time; a
	// portal that does not answer is left out.
	PoliciesOf(ctx context.Context, list []federation.Peer) map[string]hosting.Policy
}

// Pages are the pages of packages, and of the operator about hosting.
type Pages struct{ cfg PagesConfig }

// NewPages returns the pages.
func NewPages(cfg PagesConfig) *Pages { return &Pages{cfg} }

// Routes declares the routes of the pages.
func (d *Pages) Routes(r chi.Router) {
	page := d.cfg.Site.Page
	r.Get("/packages", page(request.Listing(d.listPackages)))
	r.Get("/packages/new", page(request.Listing(d.newPackage)))
	r.Post("/packages/new", page(d.publishPackage))
	r.Get("/packages/{name}", page(request.Listing(d.showPackage)))
	r.Post("/packages/{name}/host", page(d.hostPackage))
	r.Get("/admin/hosting", page(d.showHosting))
	r.Post("/admin/hosting", page(d.saveRules))
	r.Post("/admin/hosting/kills", page(d.stopModule))
	r.Post("/admin/hosting/kills/delete", page(d.releaseModule))
}

func newRow(p *packages.Package) templates.PackageRow {
	row := templates.PackageRow{Handle: p.Handle(), Version: p.Version, Summary: p.Summary, Licence: p.Licence,
		Author: p.Author, Verified: p.Verified}
	if p.State != packages.Published {
		row.State = string(p.State)
	}
	return row
}

const listed = 50

func (d *Pages) listPackages(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q := r.URL.Query()
	list, next, err := d.cfg.Packages.List(actor, packages.Query{Text: q.Get("q"), After: q.Get("cursor"), Limit: listed})
	if err != nil {
		return err
	}
	v := templates.PackagesView{Query: q.Get("q")}
	for i := range list {
		v.Rows = append(v.Rows, newRow(&list[i]))
	}
	if next != "" {
		v.NextHref = "/packages?" + url.Values{"q": {v.Query}, "cursor": {next}}.Encode()
	}
	return d.cfg.Site.Render(w, r, http.StatusOK, templates.Packages(d.cfg.Site.Frame(r, actor, "Packages"), v))
}

// findPackage returns the package in the path, of the given version.
func (d *Pages) findPackage(r *http.Request, actor ident.Actor, version string) (packages.Package, error) {
	text := request.PathName(r)
	if version != "" {
		text += "/" + version
	}
	ref, err := d.cfg.Packages.ParseRef(text)
	if err != nil {
		return packages.Package{}, fault.New(fault.NotFound, "There is no package %.80q here.", text)
	}
	return d.cfg.Packages.Find(actor, ref)
}

func (d *Pages) showPackage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	p, err := d.findPackage(r, actor, r.URL.Query().Get("version"))
	if err != nil {
		return err
	}
	v := templates.PackageView{AgentName: p.Name, Visibility: string(hub.Public)}
	return d.renderPackage(w, r, actor, http.StatusOK, &p, v)
}

// renderPackage fills and shows the page of a package; v has the typed values.
func (d *Pages) renderPackage(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, p *packages.Package,
	v templates.PackageView) error {
	v.PackageRow, v.Name, v.Portal, v.Note = newRow(p), p.Name, p.Portal, p.Note
	v.Module, v.Size, v.Created, v.Usable = p.Module, pages.FormatBytes(p.Size),
		pages.FormatMoment(p.CreatedAt), p.Usable()
	v.Languages, v.Limits = strings.Join(p.Languages, ", "), limitsText(p.Limits)
	if p.Portal == "" {
		v.Portal, v.Downloads = d.cfg.Host, pages.FormatNumber(p.Downloads)
	}
	if p.Readme != "" {
		v.Readme = d.cfg.Markup.Message(p.Readme)
	}
	given := v.Grants
	v.Grants = nil
	for _, g := range p.Grants {
		v.Grants = append(v.Grants, templates.PackageGrant{Name: g.Name, Label: grantLabel(g.Name), Why: g.Why,
			Given: slices.ContainsFunc(given, func(x templates.PackageGrant) bool { return x.Name == g.Name })})
	}
	if err := d.cfg.Hosting.MayUpload(r.Context(), actor); err != nil {
		v.HostRefusal = fault.As(err).Safe
	} else {
		v.MayHost = true
	}
	ref := packages.Ref{Name: p.Name, Portal: p.Portal}
	list, err := d.cfg.Packages.Versions(actor, ref)
	if err != nil {
		return err
	}
	for i := range list {
		row := newRow(&list[i])
		v.Versions = append(v.Versions, templates.PackageVersion{Version: row.Version, State: row.State,
			Href:    "/packages/" + url.PathEscape(row.Handle) + "?version=" + url.QueryEscape(row.Version),
			Current: row.Version == p.Version, Created: pages.FormatMoment(list[i].CreatedAt)})
	}
	for _, run := range runsOf(r.Context(), d.cfg.Packages, d.cfg.Hub, actor, p) {
		place := templates.PackagePlace{Handle: run.agent.Handle(), Version: run.version,
			State: string(run.agent.Liveness.State)}
		if run.agent.Liveness.Latency > 0 {
			place.Latency = pages.FormatLatency(run.agent.Liveness.Latency)
		}
		v.Places = append(v.Places, place)
	}
	v.Elsewhere = d.otherPortals(r.Context(), actor, p)
	return d.cfg.Site.Render(w, r, code, templates.PackagePage(d.cfg.Site.Frame(r, actor, p.Handle()), v))
}

func limitsText(l packages.Limits) string {
	var parts []string
	if l.MemoryMiB > 0 {
		parts = append(parts, strconv.FormatInt(l.MemoryMiB, 10)+" MiB of memory")
	}
	if l.Seconds > 0 {
		parts = append(parts, strconv.FormatInt(l.Seconds, 10)+" s of computing")
	}
	return strings.Join(parts, ", ")
}

func grantLabel(name string) string {
	if host, ok := strings.CutPrefix(name, packages.HostGrant); ok {
		return "Call " + host
	}
	switch name {
	case "find":
		return "Find agents"
	case "ask":
		return "Ask other agents, once the person allows it"
	case "memory":
		return "Remember people who turn that on"
	case "library":
		return "Use files of people where they allow it"
	case "model":
		return "Ask the portal's model"
	}
	return name
}

// maxElsewhere bounds the other portals that are offered to host a package.
const maxElsewhere = 10

// policyTexts are the hosting policies in words.
var policyTexts = map[hosting.Policy]string{hosting.Off: "hosts no programs", hosting.Own: "its operators host",
	hosting.List: "accounts that its operator named host", hosting.Any: "every account there hosts"}

// otherPortals returns reachable portals on which the package may be hosted, the fastest first, and those that host no
// programs last. Portals are asked for their policy only for people with an account.
func (d *Pages) otherPortals(ctx context.Context, actor ident.Actor,
	p *packages.Package) (out []templates.PackagePortal) {
	if d.cfg.Peers == nil {
		return out
	}
	list := slices.DeleteFunc(d.cfg.Peers.Portals(ctx), func(o federation.Peer) bool {
		return o.State != federation.Active || o.URL == ""
	})
	slices.SortFunc(list, func(a, b federation.Peer) int { return int(a.RTT - b.RTT) })
	list = list[:min(len(list), maxElsewhere)]
	var known map[string]hosting.Policy
	if d.cfg.Policies != nil && actor.IsPerson() {
		known = d.cfg.Policies.PoliciesOf(ctx, list)
	}
	slices.SortStableFunc(list, func(a, b federation.Peer) int {
		return rankPolicy(known[a.Host()]) - rankPolicy(known[b.Host()])
	})
	for _, o := range list {
		handle := p.Name
		if home := p.Portal; home == "" {
			handle += "@" + d.cfg.Host
		} else if home != o.Host() {
			handle += "@" + home
		}
		row := templates.PackagePortal{Host: o.Host(), Href: o.URL + "/packages/" + url.PathEscape(handle) + "?version=" +
			url.QueryEscape(p.Version)}
		row.Policy = policyTexts[known[o.Host()]]
		if o.RTT > 0 {
			row.Latency = pages.FormatLatency(o.RTT)
		}
		out = append(out, row)
	}
	return out
}

func rankPolicy(p hosting.Policy) int {
	if p == hosting.Off {
		return 1
	}
	return 0
}

// hostPackage registers an agent that runs the package, with the chosen grants.
func (d *Pages) hostPackage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	p, err := d.findPackage(r, actor, in.Get("version"))
	if err != nil {
		return err
	}
	given := append([]string{}, in["grants"]...)
	draft := hub.Draft{}
	got, err := d.cfg.Packages.Install(r.Context(), actor, p.Handle()+"/"+p.Version, &given)
	var a hub.Agent
	if err == nil {
		draft, err = draftOf(&got, in)
	}
	if err == nil {
		a, err = d.cfg.Hub.Publish(r.Context(), actor, draft)
	}
	if err == nil {
		return respond.SeeOther(w, r, "/agents/"+a.Name)
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok || !actor.IsPerson() {
		return err
	}
	v := templates.PackageView{AgentName: in.Get("name"), Errors: messages}
	if in.Get("public") != "" {
		v.Visibility = string(hub.Public)
	}
	for _, name := range given {
		v.Grants = append(v.Grants, templates.PackageGrant{Name: name})
	}
	return d.renderPackage(w, r, actor, code, &p, v)
}

func draftOf(got *packages.Installed, in url.Values) (hub.Draft, error) {
	config, err := got.Config(nil)
	name, kind, visibility := in.Get("name"), hub.Wasm, hub.Private
	if in.Get("public") != "" {
		visibility = hub.Public
	}
	return hub.Draft{Name: &name, Description: &got.Package.Summary, Kind: &kind, Visibility: &visibility, Config: config,
		Languages: &got.Package.Languages}, err
}
