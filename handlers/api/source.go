package api

import (
	"time"

	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
)

// sourceJSON names the portal that lists an agent, and the evidence for it.
type sourceJSON struct {
	Portal   string `json:"portal"`
	URL      string `json:"url"`
	Verified bool   `json:"verified"`
	// HeadAge is the age of the portal's signed head in seconds; 0 for agents of this portal.
	HeadAge int64 `json:"head_age"`
	// ID is the portal's network id, Record the hash of the signed record, Also the hosts of other
	// portals that list the same agent.
	ID     string   `json:"id,omitempty"`
	Record string   `json:"record,omitempty"`
	Also   []string `json:"also,omitempty"`
	// Sought is the time at which the DHT found the agent for a search on this portal; empty for agents
	// from replicas.
	Sought string `json:"sought_at,omitempty"`
}

func (d *agentAPI) source(a *hub.Agent) sourceJSON {
	if !a.Elsewhere() {
		return sourceJSON{Portal: d.portal.Host, URL: d.portal.URL, Verified: true}
	}
	s := d.hub.Source(*a)
	return sourceJSON{s.Portal, s.URL, s.Verified, int64(s.HeadAge(clock.Now()) / time.Second), s.ID, s.Record, s.Also,
		respond.FormatTime(s.Sought)}
}

func (s *sourceJSON) append(b []byte) []byte {
	b = appendField(b, `{"portal":`, s.Portal)
	b = appendField(b, `,"url":`, s.URL)
	b = appendFlag(b, `,"verified":`, s.Verified)
	b = appendNumber(b, `,"head_age":`, s.HeadAge)
	b = appendSome(b, `,"id":`, s.ID)
	b = appendSome(b, `,"record":`, s.Record)
	if len(s.Also) > 0 {
		b = appendTexts(append(b, `,"also":`...), s.Also)
	}
	b = appendSome(b, `,"sought_at":`, s.Sought)
	return append(b, '}')
}

// appendCoverage appends how many portals a search reached, so that clients see whether results are
// missing.
func appendCoverage(b []byte, c *federation.Coverage) []byte {
	b = appendNumber(b, `{"known":`, int64(c.Known))
	b = appendNumber(b, `,"asked":`, int64(c.Asked))
	b = appendNumber(b, `,"answered":`, int64(c.Answered))
	b = appendTexts(append(b, `,"silent":`...), orEmpty(c.Silent))
	if c.Named != 0 {
		b = appendNumber(b, `,"named":`, int64(c.Named))
	}
	b = appendNumber(b, `,"oldest_head_age":`, c.OldestHead)
	if c.Folded != 0 {
		b = appendNumber(b, `,"folded":`, int64(c.Folded))
	}
	b = appendField(b, `,"tier":`, c.Tier)
	if c.Limited {
		b = append(b, `,"limited":true`...)
	}
	if c.Indexes != 0 {
		b = appendNumber(b, `,"indexes":`, int64(c.Indexes))
	}
	return append(b, '}')
}

// publicationJSON is the publication state of an agent in the network.
type publicationJSON struct {
	Published bool   `json:"published"`
	Reason    string `json:"reason,omitempty"`
	// Hash, Epoch, Seq and At identify the agent's newest record and the time of its signature.
	Hash   string   `json:"hash,omitempty"`
	Epoch  int64    `json:"epoch,omitempty"`
	Seq    int64    `json:"seq,omitempty"`
	At     string   `json:"at,omitempty"`
	Listed bool     `json:"listed,omitempty"`
	Cut    []string `json:"cut,omitempty"`
}

// Publications returns the publication state of this portal's agents.
type Publications interface {
	Published(a hub.Agent) federation.Published
}

// networkOf returns the publication state of an agent, nil without federation.
func (d *agentAPI) networkOf(a hub.Agent) *publicationJSON {
	if d.publications == nil {
		return nil
	}
	s := d.publications.Published(a)
	if s.Why != "" {
		return &publicationJSON{Reason: s.Why}
	}
	return &publicationJSON{Published: true, Hash: s.Hash.String(), Epoch: s.Version.Epoch, Seq: s.Version.Seq,
		At: respond.FormatTime(s.At), Listed: s.Listed, Cut: s.Cut}
}

// voiceJSON is the liveness report of one portal about an agent, in a form without the signature.
type voiceJSON struct {
	Portal string   `json:"portal"`
	State  hub.Live `json:"state"`
	At     string   `json:"at"`
	// By is "call" if a user's call found the state, otherwise "probe".
	By string `json:"by"`
	// Whose is the reason why the report counts: here, home, pinned or proved. It is empty for a report
	// that does not count.
	Whose string `json:"whose"`
}

func voicesJSON(list []hub.Voice) []voiceJSON {
	var out []voiceJSON
	for _, v := range list {
		j := voiceJSON{v.Portal, v.State, respond.FormatTime(v.At), "probe", v.Role}
		if v.Called {
			j.By = "call"
		}
		out = append(out, j)
	}
	return out
}
