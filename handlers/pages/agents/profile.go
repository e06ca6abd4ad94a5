package agents

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/agentkind"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/memory"
	"agentsite/templates"
)

// profileDone maps ?done= to the confirmation that the profile shows after a form.
var profileDone = map[string]string{
	"published": "It is published: everyone you allow can find it now.",
	"left":      "You no longer share this agent.",
}

// agent shows the profile of an agent. The path contains its name, or for an agent of another portal its
// handle or network id.
func (d *Profile) agent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	name := request.PathName(r)
	a, err := d.hub.Anywhere(r.Context(), actor, name)
	if err != nil {
		return err
	}
	if a.Elsewhere() && !strings.Contains(name, "@") { // the path contains the agent's network id
		http.Redirect(w, r, "/agents/"+a.Handle(), http.StatusFound)
		return nil
	}
	if a.Elsewhere() {
		return d.showElsewhere(w, r, actor, a, http.StatusOK, HandedOver(r), "")
	}
	if pages.Anonymous(actor) && r.URL.RawQuery == "" {
		// The page that guests share is cached for a minute only, because it shows ages of times.
		key := fmt.Sprintf("agent %s %d %d %s %s %s", a.ID, a.Version, a.Liveness.CheckedAt.UnixMilli(), a.OwnerName,
			a.Proof.State, clock.Now().Format("15:04"))
		if d.site.RenderKept(w, key) {
			return nil
		}
		r = r.WithContext(context.WithValue(r.Context(), keepKey{}, key))
	}
	return d.ShowAgent(w, r, actor, a, http.StatusOK, HandedOver(r), "")
}

// keepKey is the context key under which the cache key of a shared profile is passed to ShowAgent.
type keepKey struct{}

// maxHandedOver bounds the text that a link may put into the message form, in runes.
const maxHandedOver = 2000

// HandedOver returns the message text that a link contains in ?text=. The text is only filled in, because
// following a link must not send anything.
func HandedOver(r *http.Request) string {
	text := []rune(strings.ToValidUTF8(request.NormalizeLines(r.URL.Query().Get("text")), ""))
	return string(text[:min(len(text), maxHandedOver)])
}

// ShowAgent renders the profile of an agent. text is filled into the message form, wrong is the error
// about it.
func (d *Profile) ShowAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor, a hub.Agent, code int, text,
	wrong string) error {
	if a.Elsewhere() {
		return d.showElsewhere(w, r, actor, a, code, text, wrong)
	}
	kind := agentkind.Of(a.Kind)
	server, err := d.servers.ServerName(r.Context(), a)
	if err != nil {
		return err
	}
	v := templates.AgentView{
		Ref: a.Handle(), Title: a.Title, Handle: d.site.FullHandle(a.Handle()), Icon: a.Icon, Kind: kind.Label,
		Provenance: d.site.Provenance(a), KindHelp: kind.Help,
		Tags: a.Tags(), Examples: pages.Examples(a, 3), Owner: a.OwnerName, TextGoesTo: d.site.TextGoesTo(a),
		Limits: d.limitTexts(a), Uses: d.uses(a, server), TokenHint: d.tokenHint(a),
		Version: pages.FormatNumber(int64(a.Version)), VersionsHref: "/agents/" + a.Name + "/versions",
		Updated: pages.FormatMoment(a.UpdatedAt), Created: pages.FormatMoment(a.CreatedAt),
		Visibility: string(a.Visibility), Publisher: a.Publisher, Proof: string(a.Proof.State), ProofText: proofText(a),
		Languages: languageNames(a.Languages), Takes: modeTexts(a.InputModes), Gives: modeTexts(a.OutputModes),
		Mine: a.MayEdit(actor), Draft: a.Status.State == hub.StatusDraft, Reportable: a.Kind != hub.Builtin &&
			!a.OwnedBy(actor), Text: text, Error: wrong,
	}
	if d.halts != nil {
		v.Paused = d.halts.ReasonOf(a, d.hub.TextGoesTo(a))
	}
	v.Tagline, v.Description = d.site.Describe(a.Description)
	if v.Health, err = d.health(r.Context(), actor, a); err != nil {
		return err
	}
	d.fillReports(&v, a, clock.Now())
	if use, err := d.hub.Usage.Count(r.Context(), a); err == nil {
		v.Used = usedText(use)
	} else if r.Context().Err() == nil {
		d.log.Warn("count calls", "agent", a.ID, "error", err)
	}
	if a.Kind == hub.Builtin {
		v.Owner = "this portal"
	} else if a.OwnerName != "" {
		v.OwnerHandle = d.site.FullHandle(a.OwnerName)
	}
	if v.Mine {
		v.Endpoint = a.Endpoint
	}
	d.setPackage(r.Context(), actor, a, &v)
	v.Tools = toolsOf(a)
	if len(v.Tools) == 0 {
		for _, s := range a.Skills {
			left := slices.DeleteFunc(slices.Clone(s.Examples),
				func(e string) bool { return slices.Contains(v.Examples, e) })
			v.Skills = append(v.Skills, templates.Skill{ID: s.ID, Name: s.Name, Description: s.Description,
				Tags: s.Tags, Examples: left})
		}
	}
	v.Banners = statusBanners(a, v.Mine)
	v.Offered, v.Next = d.offeredTo(r.Context(), actor, a), d.next(actor, a)
	v.NoTalk, v.LogIn = d.site.NoTalk(actor, a)
	if v.Memory, err = d.memoryText(r.Context(), actor, a); err != nil {
		return err
	}
	if a.Status.State == hub.Withdrawn {
		v.Uses = nil
	}
	if a.Kind == hub.Link && a.OwnedBy(actor) && a.Liveness.State != hub.Alive {
		v.Start = d.startCommand(a)
	}
	if a.Status.State != hub.Withdrawn {
		v.Share = new(d.shareView(a))
	}
	p := d.site.Frame(r, actor, a.Title)
	p.Description, p.Preview = v.Tagline, d.preview(a, v.Tagline)
	p.Flash = profileDone[r.URL.Query().Get("done")]
	if wrong != "" && v.NoTalk != "" {
		p.Flash, p.FlashKind = wrong, "error"
	}
	if key, ok := r.Context().Value(keepKey{}).(string); ok {
		return d.site.RenderShared(w, r, key, templates.Agent(p, v))
	}
	return d.site.Render(w, r, code, templates.Agent(p, v))
}

// health returns the summary of the last exchanges with an agent: state, latency, history and uptime.
func (d *Profile) health(ctx context.Context, actor ident.Actor, a hub.Agent) (templates.Health, error) {
	h := templates.Health{Provenance: d.site.Provenance(a)}
	if a.Kind == hub.Builtin {
		h.Line = "It runs on this portal and is there while the portal is."
		return h, nil
	}
	now := clock.Now()
	h.Checked, h.CheckedAgo = pages.FormatMoment(a.Liveness.CheckedAt), agoWords(a.Liveness.CheckedAt, now)
	h.Latency, h.Reason = pages.FormatLatency(a.Liveness.Latency), a.Liveness.Reason
	switch a.Liveness.State {
	case hub.Alive:
		h.Reason = ""
	case hub.Unreachable:
		h.Latency = "" // the latency of a failed check is only the timeout
	}
	list, err := d.hub.HistoryOf(ctx, a)
	if err != nil {
		return h, err
	}
	h.Line, h.Since = sinceText(list, a.Liveness)
	if strings.TrimSuffix(h.Reason, ".") == h.Line {
		h.Reason = "" // the reason repeats the line above it
	}
	if remote := a.Kind != hub.Link && a.Kind != hub.Prompt; remote && a.Liveness.State == hub.Unreachable &&
		a.MayEdit(actor) {
		h.Reason = strings.TrimSpace(h.Reason +
			" Make sure that it runs and that its address is right, then check again.")
	}
	h.Picture = historyPicture(list)
	h.Uptime = uptimeTexts(list, now)
	return h, nil
}

// offeredTo reports whether the owner has offered the agent to the actor.
func (d *Profile) offeredTo(ctx context.Context, actor ident.Actor, a hub.Agent) bool {
	if !actor.IsPerson() || a.OwnerID == actor.ID || a.Kind == hub.Builtin {
		return false
	}
	list, err := d.hub.Offers(ctx, actor)
	return err == nil && slices.ContainsFunc(list, func(o hub.Offer) bool { return o.Agent.ID == a.ID })
}

func (d *Profile) checkAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Check(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/agents/"+a.Name+"#alive")
}

// pauseAgent pauses an agent, or resumes it.
func (d *Profile) pauseAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	name := request.PathName(r)
	if in.Get("pause") != "" {
		err = d.halts.Pause(r.Context(), actor, name, in.Get("reason"))
	} else {
		err = d.halts.Resume(r.Context(), actor, name)
	}
	if err != nil {
		return err
	}
	to := "/agents/" + url.PathEscape(name)
	if in.Get("back") == "work" {
		return respond.SeeOther(w, r, to+"/owner/work")
	}
	return respond.SeeOther(w, r, to+"#alive")
}

// declareRoutes declares the routes of the pages of one agent that everyone with access sees.
func (d *Profile) declareRoutes(r chi.Router) {
	r.Get("/agents/{name}", d.site.Page(d.agent))
	r.Get("/agents/{name}/icon", d.site.Page(d.agentIcon))
	r.Get("/agents/{name}/versions", d.site.Page(request.Listing(d.agentVersions)))
	r.Get("/agents/{name}/versions/{version}", d.site.Page(d.agentVersion))
	r.Post("/agents/{name}/rollback", d.site.Page(d.rollbackAgent))
	r.Post("/agents/{name}/check", d.site.Page(d.checkAgent))
	r.Post("/agents/{name}/pause", d.site.Page(d.pauseAgent))
	r.Get("/agents/{name}/report", d.site.Page(d.reportForm))
	r.Post("/agents/{name}/report", d.site.Page(d.reportAgent))
	r.Get("/agents/{name}/qr.svg", d.site.Page(d.agentQR))
	r.Get("/chat/new", d.site.Page(d.newChat))
}

// memoryText returns a sentence about the memory that an agent may have of the actor; "" if it has none.
func (d *Profile) memoryText(ctx context.Context, actor ident.Actor, a hub.Agent) (string, error) {
	if !actor.IsPerson() || d.memories == nil || a.Elsewhere() || !memory.CanRemember(string(a.Kind), a.Config) {
		return "", nil
	}
	n, err := d.memories.Count(ctx, actor, a.Name)
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return "It can remember what you say, if you let it.", nil
	case n == 1:
		return "It remembers 1 thing about you.", nil
	}
	return "It remembers " + pages.FormatNumber(int64(n)) + " things about you.", nil
}
