// Package translate says of agents of this portal what their signed records
// say, and reads records of agents of other portals as agents of the directory.
// It decides what leaves the portal and how it is cut to fit, and what is
// believed of what comes in: nothing that is not within the bounds of agents
// registered here. It signs nothing, stores nothing and asks nobody.
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

// The protocols of Endpoint.Protocol: the portal's own doors to an agent.
const (
	ProtocolA2A    = "a2a"
	ProtocolMCP    = "mcp"
	ProtocolOpenAI = "openai"
)

// wayHosted is the Way of a proof that the portal needs not look for.
const wayHosted = "hosted"

// Exportable reports whether an agent may be published at all: it is of this
// portal and everybody may find it. That its owner's account is there is for
// the caller to know.
func Exportable(a hub.Agent) bool {
	return a.Portal == "" && a.Kind != hub.Peer && a.Listable() && !a.Status.Held
}

// LocalID returns the id in records of an agent of this portal.
func LocalID(agentID string) string { return strings.ToLower(agentID) }

// Record returns what the record of an agent of this portal says, without the
// header, and in words what had to be left out or cut so that it fits. The
// same agent gives the same record, whoever asks and whenever: now only bounds
// its times. Where the portal itself reaches the agent, its settings and
// credentials, and whose it is beyond the name that visitors see, are not in
// it.
func Record(a hub.Agent, origin string, now time.Time) (*record.Agent, []string) {
	f := fit{agent: a}
	issued := clock.Milli(now)
	r := &record.Agent{
		ID: LocalID(a.ID), Name: a.Name, Kind: string(a.Kind),
		Title: f.line("title", a.Title, record.MaxTitle),
		// Two spaces or none, the record says what the page does.
		Description: f.text("description", a.Description, record.MaxDescription),
		Caps:        Caps(a), Languages: languages(a.Languages),
		Inputs: media(a.InputModes), Outputs: media(a.OutputModes),
		Created: min(clock.Milli(a.CreatedAt), issued), Updated: min(clock.Milli(a.UpdatedAt), issued),
		Owner: a.OwnerName, Proof: proof(a.Proof, issued),
	}
	if record.ValidOrigin("https://" + a.Publisher) {
		r.Publisher = a.Publisher
	}
	if a.Status.State == hub.Deprecated {
		r.Status, r.StatusNote = record.StatusDeprecated, f.text("note of its status", a.Status.Message, record.MaxStatusNote)
	}
	if record.ValidOrigin(origin) {
		at := origin + "/agents/" + a.Name
		r.Endpoints = []record.Endpoint{{URL: at + "/a2a", Protocol: ProtocolA2A}, {URL: at + "/mcp", Protocol: ProtocolMCP}, {URL: origin + "/v1", Protocol: ProtocolOpenAI}}
		r.CardURL = origin + a2a.CardPath(a.Name)
	}
	f.shrink(r)
	return r, f.cut
}

// proof is what this portal may say it saw.
func proof(p hub.Proof, issued int64) *record.AgentProof {
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

// languages are tags as records have them.
func languages(in []string) []string {
	out := make([]string, 0, len(in))
	for _, l := range in {
		if l = strings.ToLower(l); record.ValidTag(l, record.MaxLanguage) {
			out = append(out, l)
		}
	}
	return ordered(out, record.MaxLanguages)
}

func media(in []string) []string {
	out := make([]string, 0, len(in))
	for _, m := range in {
		if m = strings.ToLower(m); record.ValidMediaType(m) {
			out = append(out, m)
		}
	}
	return ordered(out, record.MaxMedia)
}

// ordered sorts the first of list, at most most, each once; nil for none.
func ordered(list []string, most int) []string {
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
