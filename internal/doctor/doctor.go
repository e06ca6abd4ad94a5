// Package doctor looks a portal over for its operator: data, settings, whether it
// can be reached, keys, clock, other portals, what is held of them, and its own
// agents. It names each fault and what to do. It changes nothing, and opens
// nothing itself: a Subject is what there is to look at, of a portal that runs or
// of a folder alone.
package doctor

import (
	"context"
	"fmt"
	"net/http"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Level is how bad a Finding is.
type Level string

// The levels. Only faults make a portal ill.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing; the portal is well with it
	Fault   Level = "fault"   // something does not work
	Skipped Level = "skipped" // could not be looked at; the text says why
)

// Finding is one thing that was seen, in sentences for the operator. What came
// from other portals is in it as they wrote it: whoever shows it makes it safe.
type Finding struct {
	Check string `json:"check"` // one of the Checks
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
}

// The parts of a portal, in the order in which they are looked at.
const (
	Data        = "data"
	Settings    = "settings"
	Reach       = "reach"
	Keys        = "keys"
	Clock       = "clock"
	Peers       = "peers"
	Replication = "replication"
	DHT         = "dht"
	Gossip      = "gossip"
	Agents      = "agents"
	Agent       = "agent" // the one that was asked about
)

// Report is what was seen.
type Report struct {
	Healthy  bool      `json:"healthy"`
	Running  bool      `json:"running"`
	Findings []Finding `json:"findings"`
}

// maxEach bounds the findings of one sort: thousands of dead agents are one
// thing to know.
const maxEach = 10

// Add adds a finding.
func (r *Report) Add(check string, level Level, do, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{check, level, fmt.Sprintf(format, args...), do})
}

// Judge says whether anything is at fault.
func (r *Report) Judge() {
	r.Healthy = true
	for _, f := range r.Findings {
		r.Healthy = r.Healthy && f.Level != Fault
	}
}

// Question narrows what is looked at to whether an agent of this portal is found
// at another. The zero Question looks at everything.
type Question struct {
	Agent  string // its name
	Portal string // the other portal's id, host or address; empty looks at this one alone
}

// Subject is a portal to look at. What is nil is not there to be looked at.
type Subject struct {
	Dir     string // its data folder
	Running bool
	// URL is how others reach it, Listen where it listens; Proxies whether
	// forwarding headers of anybody are believed.
	URL, Listen string
	Proxies     bool
	Network     string // empty: none
	ID          record.PortalID
	// Standing is how it is with keys and card.
	Standing func(ctx context.Context) (federation.SelfStanding, error)
	// Known are the other portals, as the operator sees them.
	Known   func(ctx context.Context) ([]federation.Peer, error)
	Replica federation.Replica
	// DHT is how the portal stands there; nil where it has none, as one that does
	// not run.
	DHT func() federation.DHTStanding
	// Gossip is how it stands in the pool that gossips; nil where it has none.
	Gossip func() federation.GossipStanding
	// LookUp looks for something there, as federation.DHT's Ask does.
	LookUp  func(ctx context.Context, what string) (federation.DHTAnswer, error)
	Exports func(tags, languages []string) bool
	// Web asks others without saying who asks; Caller asks signed, which only a
	// portal that runs can.
	Web    http.RoundTripper
	Caller federation.Caller
	// Own calls yield with each agent of the portal.
	Own func(ctx context.Context, yield func(hub.Agent) bool) error
	// Published says how an agent stands in the network.
	Published func(a hub.Agent) federation.Published
	// Databases looks at the files of the databases and adds what it sees.
	Databases func(ctx context.Context, r *Report)
}

// Examine looks at a portal, or for the answer to a question.
func Examine(ctx context.Context, s Subject, q Question) Report {
	r := Report{Running: s.Running, Findings: []Finding{}}
	if q.Agent != "" {
		s.trace(ctx, &r, q)
		r.Judge()
		return r
	}
	s.folder(&r)
	if s.Databases != nil {
		s.Databases(ctx, &r)
	}
	s.settings(&r)
	s.reach(ctx, &r)
	s.keys(ctx, &r)
	s.others(ctx, &r)
	s.addresses(ctx, &r)
	s.pool(ctx, &r)
	s.agents(ctx, &r)
	r.Judge()
	return r
}

// few adds at most maxEach findings of one sort, and says how many others there
// are.
type few struct {
	r     *Report
	check string
	level Level
	do    string
	n     int
}

func (f *few) add(format string, args ...any) {
	if f.n++; f.n <= maxEach {
		f.r.Add(f.check, f.level, f.do, format, args...)
	}
}

func (f *few) done() {
	if more := f.n - maxEach; more > 0 {
		f.r.Add(f.check, f.level, f.do, "… and %d more like these.", more)
	}
}
