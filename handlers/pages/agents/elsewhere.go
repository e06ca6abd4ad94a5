package agents

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentsite/handlers/address"
	"agentsite/handlers/pages"
	"agentsite/internal/agentkind"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// showElsewhere shows the profile of an agent of another portal, with its signed record and the evidence
// that the portal lists it.
func (d *Profile) showElsewhere(w http.ResponseWriter, r *http.Request, actor ident.Actor, a hub.Agent, code int, text,
	wrong string) error {
	evidence, err := d.hub.Evidence(r.Context(), a, false)
	// built-in agents of other portals have no record
	if err != nil && !(a.Kind == hub.Builtin && fault.Is(err, fault.NotFound)) {
		return err
	}
	now := clock.Now()
	source := d.hub.Source(a)
	kind := agentkind.Of(a.Kind)
	v := templates.AgentView{
		Ref: a.Handle(), Title: a.Title, Handle: a.Handle(), Kind: kind.Label, Provenance: d.site.Provenance(a),
		KindHelp: agentkind.Of(a.Kind).Remote,
		Tags:     a.Tags(), Examples: pages.Examples(a, 3), TextGoesTo: d.site.TextGoesTo(a), Limits: d.limitTexts(a),
		Uses: d.uses(a, ""), TokenHint: d.tokenHint(a),
		Updated: pages.FormatMoment(a.UpdatedAt), Created: pages.FormatMoment(a.CreatedAt), Proof: a.Proof.State,
		ProofText: proofText(a),
		Languages: languageNames(a.Languages), Takes: modeTexts(a.InputModes), Gives: modeTexts(a.OutputModes),
		Text: text, Error: wrong,
		Banners: statusBanners(a, false), From: fromView(a, source, evidence, now),
	}
	v.Provenance.Verified = source.Verified
	silent := source.Silent
	if p, ok := d.peers.Portal(r.Context(), cmp.Or(source.ID, a.Portal)); ok {
		v.From.Here = address.NetworkPath(p)
		if silent = p.Mute(); silent {
			v.Banners = append(v.Banners, silentBanner(p, now))
		}
	}
	d.setPackage(r.Context(), actor, a, &v)
	v.Tagline, v.Description = d.site.Describe(a.Description)
	v.Owner, _, _ = strings.Cut(a.OwnerName, "@")
	v.OwnerHandle = a.OwnerName
	for _, s := range a.Skills {
		left := slices.DeleteFunc(slices.Clone(s.Examples),
			func(e string) bool { return slices.Contains(v.Examples, e) })
		v.Skills = append(v.Skills, templates.Skill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags,
			Examples: left})
	}
	v.Health = templates.Health{Provenance: v.Provenance, Checked: pages.FormatMoment(a.Liveness.CheckedAt),
		CheckedAgo: agoWords(a.Liveness.CheckedAt, now),
		Latency:    pages.FormatLatency(a.Liveness.Latency), Line: liveElsewhere(a.Liveness), Reason: a.Liveness.Reason}
	d.fillReports(&v, a, now)
	if silent { // the portal does not answer, so calls fail even if others report the agent as alive
		v.Provenance.Live, v.Provenance.LiveReason = string(hub.Unreachable), pages.NoAnswer
		v.Health.Live, v.Health.Line, v.Health.Reason = string(hub.Unreachable), "It cannot be reached now",
			pages.NoAnswer
	}
	v.NoTalk, v.LogIn = d.site.NoTalk(actor, a)
	v.Share = new(d.shareView(a))
	p := d.site.Frame(r, actor, a.Title)
	p.Description, p.Preview = v.Tagline, d.preview(a, v.Tagline)
	if p.Preview != nil && source.URL != "" {
		p.Preview.URL = v.From.Home // the canonical address of the profile is on the agent's own portal
	}
	if wrong != "" && v.NoTalk != "" {
		p.Flash, p.FlashKind = wrong, "error"
	}
	return d.site.Render(w, r, code, templates.Agent(p, v))
}

// silentBanner returns a warning that the portal of an agent does not answer.
func silentBanner(p federation.Peer, now time.Time) templates.Banner {
	text := cmp.Or(p.Name, p.Host()) + ", the portal it lives on, does not answer now."
	if !p.LastSeen.IsZero() && now.Sub(p.LastSeen) >= time.Minute {
		text += " It last did " + agoWords(p.LastSeen, now) + "."
	}
	return templates.Banner{Kind: "warn", Text: text + " What you write cannot reach the agent until it answers again."}
}

// liveElsewhere returns the reported liveness of an agent of another portal in a few words.
func liveElsewhere(l hub.Liveness) string {
	switch l.State {
	case hub.Alive:
		return "Alive"
	case hub.NeedsAuth:
		return "It wants credentials"
	case hub.WrongProtocol:
		return "Something else answers"
	case hub.Unreachable:
		return "It did not answer"
	}
	return "Status unknown"
}

// fromView returns the origin of an agent of another portal and the evidence for it.
func fromView(a hub.Agent, s hub.Source, e hub.Evidence, now time.Time) *templates.FromView {
	v := &templates.FromView{Portal: a.Portal, Name: s.Name, URL: s.URL, Home: s.URL + "/agents/" + a.Name,
		Verified: s.Verified, PortalID: s.ID,
		HeadAge: pages.FormatAge(s.HeadAge(now)), Record: e.Hash, Key: e.Key, Issued: pages.FormatMoment(e.Issued),
		Expires: pages.FormatMoment(e.Expires),
		HeadSeq: pages.FormatNumber(e.HeadSeq), HeadHash: e.HeadHash,
		HeadCount:  pages.FormatCounted(int(e.HeadCount), "agent", "agents"),
		HeadIssued: pages.FormatMoment(e.HeadIssued), HeadExpires: pages.FormatMoment(e.HeadExpires),
		RecordHref: "/api/v1/agents/" + a.Handle() + "/record", CardURL: e.CardURL, Terms: e.Terms, Pricing: e.Pricing,
		Publisher: a.Proof.Publisher, Also: s.Also,
		ReportHref: s.URL + "/agents/" + a.Name + "/report"}
	if !s.Sought.IsZero() {
		v.Sought = agoWords(s.Sought, now)
	}
	for _, p := range e.Endpoints {
		v.Addresses = append(v.Addresses, templates.Fact{Label: strings.ToUpper(p.Protocol), Value: p.URL})
	}
	return v
}
