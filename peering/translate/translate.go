// Package translate converts agents of this portal to their signed records, and records of agents
// of other portals to agents of the directory. It decides which fields leave the portal and how
// they are cut to fit, and limits incoming fields to the bounds of agents registered here. It does
// not sign, store or send anything.
//
//	rec, cut := translate.Record(agent, "https://a.example", now)
//	agent, err := translate.Agent(card, rec)
package translate

import (
	"slices"
	"strings"
	"time"

	"agentsite/internal/a2a"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Values of Endpoint.Protocol for the endpoints at the portal itself.
const (
	ProtocolA2A    = "a2a"
	ProtocolMCP    = "mcp"
	ProtocolOpenAI = "openai"
)

// wayHosted is the value of Way in a proof that needs no verification, because the portal runs the agent
// itself.
const wayHosted = "hosted"

// Exportable reports whether an agent may be published: it was registered at this portal and is
// visible to all. Built-in agents are not published, because every portal has its own. The caller
// checks that the owner's account is active.
func Exportable(a hub.Agent) bool {
	return a.Portal == "" && a.Kind != hub.Peer && a.Kind != hub.Builtin && a.Listable() && !a.Status.Held
}

// LocalID returns the id that an agent of this portal has in records, without the portal's id.
func LocalID(agentID string) string { return strings.ToLower(agentID) }

// Record returns the record of an agent of this portal without the header, and descriptions of the
// cuts that were needed to make it fit. The same agent always gives the same record: now only
// bounds its times. The record has neither the agent's own address, settings and credentials, nor
// anything about its owner beyond the public name.
func Record(a hub.Agent, origin string, now time.Time) (*record.Agent, []string) {
	f := fit{agent: a}
	issued := clock.Milli(now)
	r := &record.Agent{
		ID: LocalID(a.ID), Name: a.Name, Kind: string(a.Kind),
		Title: f.cutLine("title", a.Title, record.MaxTitle),
		// Spaces are normalized like on the page, so that the signed text equals the displayed one.
		Description: f.cutText("description", a.Description, record.MaxDescription),
		Caps:        Caps(a), Languages: recordLanguages(a.Languages),
		Inputs: recordMedia(a.InputModes), Outputs: recordMedia(a.OutputModes),
		Created: min(clock.Milli(a.CreatedAt), issued), Updated: min(clock.Milli(a.UpdatedAt), issued),
		Owner: a.OwnerName, Proof: agentProof(a.Proof, issued),
	}
	if record.ValidOrigin("https://" + a.Publisher) {
		r.Publisher = a.Publisher
	}
	if a.Status.State == hub.Deprecated {
		r.Status, r.StatusNote = record.StatusDeprecated,
			f.cutText("note of its status", a.Status.Message, record.MaxStatusNote)
	}
	if record.ValidOrigin(origin) {
		at := origin + "/agents/" + a.Name
		r.Endpoints = []record.Endpoint{{URL: at + "/a2a", Protocol: ProtocolA2A},
			{URL: at + "/mcp", Protocol: ProtocolMCP}, {URL: origin + "/v1", Protocol: ProtocolOpenAI}}
		r.CardURL = origin + a2a.CardPath(a.Name)
	}
	f.fitSkills(r)
	return r, f.cut
}

// agentProof returns the proof that this portal verified itself, nil if there is none.
func agentProof(p hub.Proof, issued int64) *record.AgentProof {
	switch p.State {
	case hub.Hosted:
		return &record.AgentProof{Way: wayHosted}
	case hub.Proved:
		out := &record.AgentProof{Way: p.Method, At: min(clock.Milli(p.At), issued)}
		if record.ValidOrigin(p.Origin) {
			out.Origin = p.Origin
		}
		return out
	}
	return nil
}

// recordLanguages returns language tags in the form of records: in lower case, sorted, without duplicates
// and invalid ones.
func recordLanguages(in []string) []string {
	out := make([]string, 0, len(in))
	for _, l := range in {
		if l = strings.ToLower(l); record.ValidTag(l, record.MaxLanguage) {
			out = append(out, l)
		}
	}
	return sortUnique(out, record.MaxLanguages)
}

func recordMedia(in []string) []string {
	out := make([]string, 0, len(in))
	for _, m := range in {
		if m = strings.ToLower(m); record.ValidMediaType(m) {
			out = append(out, m)
		}
	}
	return sortUnique(out, record.MaxMedia)
}

// sortUnique returns the first most distinct entries of list, sorted; nil for none.
func sortUnique(list []string, most int) []string {
	if len(list) == 0 {
		return nil
	}
	seen := make(map[string]bool, len(list))
	list = slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
	list = list[:min(len(list), most)]
	slices.Sort(list)
	return list
}
