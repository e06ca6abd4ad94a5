package handlers

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// facetOptions is how many values of a facet a page offers.
const facetOptions = 10

// browse lists agents by what is searched and filtered.
func (d *Door) browse(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q, err := d.searchQuery(r)
	if err != nil {
		return err
	}
	// Lists without words are kept: of words there are too many.
	keep := anonymous(actor) && q.Text == ""
	key := ""
	if keep {
		key = sharedKey(d.hub.State(), r.URL.RequestURI())
		if d.renderKept(w, key) {
			return nil
		}
	}
	page, err := d.hub.Search(r.Context(), actor, q)
	if err != nil {
		return err
	}
	v := templates.AgentsView{Query: q.Text, Total: page.Total}
	for _, res := range page.Results {
		v.Results = append(v.Results, d.card(res.Agent, res.Matched...))
	}
	f := filters{q}
	v.Facets, v.Filters, v.Kept = f.facets(page.Facets), f.active(), f.kept()
	if page.NextCursor != "" {
		more := f.values()
		more.Set("cursor", page.NextCursor)
		v.MoreHref = "/agents?" + more.Encode()
	}
	for _, s := range page.Suggestions {
		v.Suggestions = append(v.Suggestions, templates.Link{Label: s, Href: "/agents?" + url.Values{"q": {s}}.Encode()})
	}
	if len(v.Results) == 0 {
		_, v.Guide = d.guide(r.Context(), actor)
	} else if keep {
		return d.renderShared(w, r, key, templates.Agents(d.frame(r, actor, "Agents"), v))
	}
	return d.render(w, r, http.StatusOK, templates.Agents(d.frame(r, actor, "Agents"), v))
}

// filters are those of a query as addresses of the page.
type filters struct{ q hub.Query }

// filterNames are the parameters, in the order pages show them.
var filterNames = [...]struct{ param, title string }{{"kind", "Kind"}, {"live", "State"}, {"tag", "Tag"}, {"skill", "Skill"}, {"portal", "Portal"}}

func (f filters) of(param string) []string {
	switch param {
	case "kind":
		return f.q.Kinds
	case "live":
		return f.q.Live
	case "tag":
		return f.q.Tags
	case "skill":
		return f.q.Skills
	}
	return f.q.Portals
}

// values are the query as parameters, without a cursor.
func (f filters) values() url.Values {
	v := url.Values{}
	if f.q.Text != "" {
		v.Set("q", f.q.Text)
	}
	for _, n := range filterNames {
		if list := f.of(n.param); len(list) > 0 {
			v[n.param] = slices.Clone(list)
		}
	}
	return v
}

// toggled is the address with one filter switched on, or off when it is on.
func (f filters) toggled(param, value string) string {
	v := f.values()
	if i := slices.Index(v[param], value); i >= 0 {
		v[param] = slices.Delete(v[param], i, i+1)
	} else {
		v[param] = append(v[param], value)
	}
	if len(v[param]) == 0 {
		delete(v, param)
	}
	if len(v) == 0 {
		return "/agents"
	}
	return "/agents?" + v.Encode()
}

func filterLabel(param, value string) string {
	switch {
	case param == "kind":
		return textOf(hub.Kind(value)).label
	case param == "live":
		return strings.ReplaceAll(value, "_", " ")
	case param == "portal" && value == "local":
		return "here"
	}
	return value
}

func (f filters) facets(counts map[string][]hub.FacetCount) []templates.Facet {
	var out []templates.Facet
	for _, n := range filterNames {
		on := f.of(n.param)
		values := counts[n.param]
		// A skill is as particular as an agent, and one portal is no choice.
		if len(on) == 0 && (n.param == "skill" || n.param == "portal" && len(values) < 2) {
			continue
		}
		facet := templates.Facet{Name: n.title}
		add := func(value string, count int) {
			facet.Options = append(facet.Options, templates.FacetOption{Label: filterLabel(n.param, value), Count: count,
				Href: f.toggled(n.param, value), Active: slices.Contains(on, value)})
		}
		shown := make(map[string]bool)
		for _, c := range values {
			if slices.Contains(on, c.Value) || len(facet.Options) < facetOptions {
				add(c.Value, c.Count)
				shown[c.Value] = true
			}
		}
		for _, value := range on {
			if !shown[value] {
				add(value, 0)
			}
		}
		if len(facet.Options) > 0 {
			out = append(out, facet)
		}
	}
	return out
}

func (f filters) active() []templates.ActiveFilter {
	var out []templates.ActiveFilter
	for _, n := range filterNames {
		for _, value := range f.of(n.param) {
			out = append(out, templates.ActiveFilter{Name: n.title, Value: filterLabel(n.param, value), RemoveHref: f.toggled(n.param, value)})
		}
	}
	return out
}

func (f filters) kept() []templates.Hidden {
	var out []templates.Hidden
	for _, n := range filterNames {
		for _, value := range f.of(n.param) {
			out = append(out, templates.Hidden{Name: n.param, Value: value})
		}
	}
	return out
}

// elsewhere tells apart handles of other portals, which this portal does not
// reach yet, from names it does not know.
func (d *Door) elsewhere(name string) error {
	if h, ok := ident.ParseHandle(name, d.cfg.Host); ok && h.Portal != "" {
		return fault.New(fault.NotFound, "That agent lives on another portal, and this one does not reach other portals yet. Look for it on its own portal.")
	}
	return nil
}

// agent shows the profile of an agent.
func (d *Door) agent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.elsewhere(pathName(r)); err != nil {
		return err
	}
	a, err := d.hub.Get(r.Context(), actor, pathName(r))
	if err != nil {
		return err
	}
	return d.showAgent(w, r, actor, a, http.StatusOK, handedOver(r), "")
}

// maxHandedOver is how many characters a link may put into the form to talk.
const maxHandedOver = 2000

// handedOver is the text that a link brought along, as the guide's do. It only
// fills the form: the reader sends it, or not.
func handedOver(r *http.Request) string {
	text := []rune(strings.ToValidUTF8(lines(r.URL.Query().Get("text")), ""))
	return string(text[:min(len(text), maxHandedOver)])
}

// showAgent renders a profile with what was typed to the agent and what was
// wrong with it.
func (d *Door) showAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor, a hub.Agent, code int, text, wrong string) error {
	kind := textOf(a.Kind)
	v := templates.AgentView{
		Ref: a.Handle(), Title: a.Title, Handle: d.fullHandle(a.Handle()), Kind: kind.label, Provenance: provenance(a), KindHelp: kind.help,
		CheckedAt: moment(a.Liveness.CheckedAt), Latency: latency(a.Liveness.Latency), Tags: a.Tags(), Examples: examples(a, 3),
		Owner: a.OwnerName, TextGoesTo: textGoesTo(a), Uses: d.uses(a), Version: whole(int64(a.Version)), Updated: moment(a.UpdatedAt), Created: moment(a.CreatedAt),
		Visibility: string(a.Visibility), Mine: d.hub.MayEdit(actor, a), Text: text, Error: wrong,
	}
	v.Tagline, v.Description = d.describe(a.Description)
	if a.Kind == hub.Builtin {
		v.Owner, v.CheckedAt, v.Latency = "this portal", templates.Time{}, ""
	} else if a.OwnerName != "" {
		v.OwnerHandle = d.fullHandle(a.OwnerName)
	}
	if v.Mine {
		v.Endpoint, v.VersionsHref = a.Endpoint, "/agents/"+a.Name+"/versions"
	}
	for _, s := range a.Skills {
		left := slices.DeleteFunc(slices.Clone(s.Examples), func(e string) bool { return slices.Contains(v.Examples, e) })
		v.Skills = append(v.Skills, templates.Skill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags, Examples: left})
	}
	switch {
	case a.Status.State == hub.Withdrawn:
		v.NoTalk, v.Uses = strings.TrimSpace("It was withdrawn and takes no work. "+a.Status.Message), nil
	case a.Visibility == hub.Private && a.OwnerID != actor.ID:
		v.NoTalk = "It is private: only its owner can talk to it."
	case !actor.IsPerson() && !d.accounts.Guests():
		v.NoTalk = "Log in to talk to it."
	case actor.Kind == ident.Guest && a.Visibility != hub.Public:
		v.NoTalk = "Visitors cannot talk to it: log in."
	}
	p := d.frame(r, actor, a.Title)
	p.Description = v.Tagline
	if wrong != "" && v.NoTalk != "" {
		p.Flash, p.FlashKind = wrong, "error"
	}
	return d.render(w, r, code, templates.Agent(p, v))
}

// describe splits a description into its first sentence and what else there
// is to read.
func (d *Door) describe(text string) (tagline string, rest templates.SafeHTML) {
	text = strings.TrimSpace(text)
	tagline = d.markup.Line(text)
	// What is underlined is a heading, which must keep its line.
	if after, ok := strings.CutPrefix(text, tagline); ok && !strings.HasPrefix(after, "\n=") && !strings.HasPrefix(after, "\n-") {
		text = strings.TrimSpace(after)
	}
	if text == "" {
		return tagline, ""
	}
	return tagline, d.markup.Message(text)
}

func (d *Door) agentVersions(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Get(r.Context(), actor, pathName(r))
	if err != nil {
		return err
	}
	list, err := d.hub.Versions(r.Context(), actor, a.Name)
	if err != nil {
		return err
	}
	v := templates.VersionsView{Ref: a.Handle(), Title: a.Title}
	for _, old := range list {
		v.Versions = append(v.Versions, templates.VersionRow{Number: whole(int64(old.Version)), Title: old.Title, Description: d.markup.Line(old.Description),
			Visibility: string(old.Visibility), Time: moment(old.UpdatedAt), Current: old.Version == a.Version})
	}
	return d.render(w, r, http.StatusOK, templates.Versions(d.frame(r, actor, "Versions of "+a.Title), v))
}

func (d *Door) checkAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Check(r.Context(), actor, pathName(r))
	if err != nil {
		return err
	}
	return see(w, r, "/agents/"+a.Name)
}

func (d *Door) deleteAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.Delete(r.Context(), actor, pathName(r)); err != nil {
		return err
	}
	return see(w, r, "/account?done=agent-deleted")
}
