package agents

import (
	"time"

	"agentsite/handlers/pages"
	"agentsite/internal/hub"
	"agentsite/templates"
)

// fillReports puts the liveness reports on a profile. For an own agent they are shown only if another portal reported,
// because the profile shows this portal's own contacts already.
func (d *Profile) fillReports(v *templates.AgentView, a hub.Agent, now time.Time) {
	l, list := d.hub.Voices(a)
	own := a.Portal == ""
	if own && len(list) < 2 || len(list) == 0 {
		return
	}
	for _, s := range list {
		v.Voices = append(v.Voices, templates.VoiceView{Portal: s.Portal, Whose: reporterLabel(s.Role, own),
			Live: string(s.State), What: reachText(s.State),
			Ago: agoWords(s.At, now), At: pages.FormatMoment(s.At), Called: s.Called, Counts: s.Role != ""})
	}
	if !own && l.State != a.Liveness.State { // the state changed after the list was read
		v.Health.Live, v.Health.Line, v.Health.Reason = string(l.State), liveElsewhere(l), l.Reason
		v.Health.Checked, v.Health.CheckedAgo = pages.FormatMoment(l.CheckedAt), agoWords(l.CheckedAt, now)
	}
}

// reporterLabel names the author of a liveness report.
func reporterLabel(role string, own bool) string {
	switch {
	case role == hub.RoleHere:
		return "(this portal)"
	case role == hub.RoleHome && !own:
		return "(its own portal)"
	case role == hub.RolePinned:
		return "(believed by the operator)"
	}
	return ""
}

// reachText describes a reported liveness in words.
func reachText(s hub.Live) string {
	switch s {
	case hub.Alive:
		return "reached it"
	case hub.NeedsAuth:
		return "was asked for a credential"
	case hub.WrongProtocol:
		return "got an answer in another protocol"
	}
	return "could not reach it"
}
