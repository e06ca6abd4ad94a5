// Package doctor examines a portal for its operator: data, settings, reachability, keys, clock, other
// portals, their replicated records, and the portal's own agents. It names each fault and the action
// that solves it. It changes nothing and opens nothing itself: a Subject holds the parts to examine, of
// a running portal or of a data folder alone.
package doctor

import (
	"context"
	"fmt"
	"net/http"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Level is the severity of a Finding; the values are part of the JSON output.
type Level string

// The levels. Only faults make a portal unhealthy.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing; the portal works nevertheless
	Fault   Level = "fault"   // something does not work
	Skipped Level = "skipped" // could not be checked; the text has the reason
)

// Finding is one result, in sentences for the operator. Do is the action that solves the problem, "" if
// there is none. Texts may contain text of other portals, so the code that displays a finding must
// escape them.
type Finding struct {
	Check string `json:"check"` // name of the check, one of the constants below
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
	// Page is the path of the portal's page that lists the counted things, "" without one.
	Page string `json:"-"`
}

// Names of the checks, in the order of a report.
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
	Agent       = "agent" // only in the answer to a Question
)

// Report is the result of an examination. Healthy is set by Judge; Running is true if the portal runs.
type Report struct {
	Healthy  bool      `json:"healthy"`
	Running  bool      `json:"running"`
	Findings []Finding `json:"findings"`
}

// maxEach is the maximum number of findings of one kind, because thousands of unreachable agents are one
// fact.
const maxEach = 10

// Add appends a finding. do is the action that solves it; the text is formatted as by fmt.Sprintf.
func (r *Report) Add(check string, level Level, do, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Check: check, Level: level,
		Text: fmt.Sprintf(format, args...), Do: do})
}

// Judge sets Healthy: true if there is no fault.
func (r *Report) Judge() {
	r.Healthy = true
	for _, f := range r.Findings {
		r.Healthy = r.Healthy && f.Level != Fault
	}
}

// Question narrows the examination to one agent of this portal, and whether another portal can find it.
// The zero Question examines everything.
type Question struct {
	Agent  string // name of one of this portal's agents; "" examines everything
	Portal string // the other portal's id, host or address; "" examines this portal alone
	// Quick leaves out the checks that ask other servers or read databases, and counts agents that do not answer
	// instead of naming each.
	Quick bool
}

// Subject holds the parts of the portal to examine. The check of a nil part is skipped.
type Subject struct {
	Dir     string // the data folder
	Running bool
	// URL is the portal's address for others and Listen the address on which it listens. Proxies is true
	// if the portal trusts the forwarding headers of any proxy.
	URL, Listen string
	Proxies     bool
	// Descriptors is how many files the running portal may have open, 0 if it is unknown. SetBack is the last
	// step back of the clock that the running portal noticed.
	Descriptors int
	SetBack     clock.SetBack
	Network     string // "" if the portal is in no network
	ID          record.PortalID
	Keyring     Keyring
	// Peers lists the other portals. PeersError is the reason why they cannot be read, else nil.
	Peers      PeerList
	PeersError error
	Replica    federation.Replica
	// DHT is nil if the portal does not take part or does not run.
	DHT federation.DHT
	// Gossip is nil if the portal does not take part.
	Gossip federation.Gossip
	// Web makes unsigned requests to other portals; Caller makes signed ones, which only a running
	// portal can.
	Web    http.RoundTripper
	Caller federation.Caller
	Agents AgentList
	// Publisher is nil if the portal does not run.
	Publisher Publisher
	Databases Databases
	// Meanings is nil without a server of embeddings, and if the portal does not run.
	Meanings Meanings
}

// Meanings returns the state of the operator's server of embeddings as a sentence, and whether it can be used. It is
// implemented by embedding.Service.
type Meanings interface {
	Describe() (text string, ok bool)
}

// Keyring returns the state of keys and card. It is implemented by control.Keyring.
type Keyring interface {
	Keys(ctx context.Context) (federation.SelfStanding, error)
}

// PeerList returns the other portals, as the operator sees them, and whether agents with given tags and
// languages are published. It is implemented by federation.Peers.
type PeerList interface {
	Portals(ctx context.Context) []federation.Peer
	Exports(tags, languages []string) bool
}

// AgentList calls yield with each agent of the portal until yield returns false. It is implemented by
// the store.
type AgentList interface {
	AllAgents(ctx context.Context, yield func(hub.Agent) bool) error
}

// Publisher returns the publication state of an agent in the network. It is implemented by
// publish.Publisher.
type Publisher interface {
	Published(a hub.Agent) federation.Published
}

// Databases checks the databases and adds findings to the report. It is implemented by control.Databases.
type Databases interface {
	// CheckState reports the failures that the portal has noticed, CheckFiles reads the files.
	CheckState(ctx context.Context, r *Report)
	CheckFiles(ctx context.Context, r *Report)
}

// listPeers returns the other portals. The list is empty if the portal has none or they are not available.
func (s Subject) listPeers(ctx context.Context) ([]federation.Peer, error) {
	if s.PeersError != nil || s.Peers == nil {
		return []federation.Peer{}, s.PeersError
	}
	return s.Peers.Portals(ctx), nil
}

// knowsPeers reports whether Peers or PeersError is set, so that listPeers has a result.
func (s Subject) knowsPeers() bool { return s.Peers != nil || s.PeersError != nil }

// Examine runs all checks or, if q names an agent, follows that agent only. It changes nothing. Problems
// are findings of the report.
func Examine(ctx context.Context, s Subject, q Question) Report {
	r := Report{Running: s.Running, Findings: []Finding{}}
	if q.Agent != "" {
		s.traceAgent(ctx, &r, q)
		r.Judge()
		return r
	}
	s.checkFolder(&r)
	if s.Databases != nil {
		s.Databases.CheckState(ctx, &r)
		if !q.Quick {
			s.Databases.CheckFiles(ctx, &r)
		}
	}
	if q.Quick {
		s.Web, s.Caller = nil, nil
	}
	s.checkSettings(&r)
	s.checkMachine(&r)
	s.checkReach(ctx, &r)
	s.checkKeys(ctx, &r)
	s.checkPeers(ctx, &r)
	s.checkDHT(ctx, &r)
	s.checkGossip(ctx, &r)
	s.checkAgents(ctx, &r, q.Quick)
	r.Judge()
	return r
}

// cappedFindings adds at most maxEach findings of one kind to a report, and then one with the number of
// the others.
type cappedFindings struct {
	r     *Report
	check string
	level Level
	do    string
	n     int
}

func (f *cappedFindings) addOne(format string, args ...any) {
	if f.n++; f.n <= maxEach {
		f.r.Add(f.check, f.level, f.do, format, args...)
	}
}

func (f *cappedFindings) addRest() {
	if more := f.n - maxEach; more > 0 {
		f.r.Add(f.check, f.level, f.do, "… and %d more like these.", more)
	}
}

// counted returns a number with its noun, for example "1 portal".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
