package agents

import (
	"time"

	"agentsite/handlers/pages"
	"agentsite/internal/hub"
	"agentsite/templates"
)

// fillReports adds the liveness reports to a profile. For an agent of this portal they are shown only if
// another portal reported too, because the profile already shows this portal's own checks.
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
	// the state changed between reading the agent and reading the reports
	if !own && l.State != a.Liveness.State {
		v.Health.Live, v.Health.Line, v.Health.Reason = string(l.State), liveElsewhere(l), l.Reason
		v.Health.Checked, v.Health.CheckedAgo = pages.FormatMoment(l.CheckedAt), agoWords(l.CheckedAt, now)
	}
}

// reporterLabel returns a label for the portal that made a liveness report. own is true for an agent of
// this portal.
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

// reachText returns a reported liveness in words.
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
