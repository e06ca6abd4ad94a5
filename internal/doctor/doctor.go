// Package doctor examines a portal for its operator: data, settings, reachability, keys, clock, other
// portals, their replicated records, and the portal's own agents. It names each fault and the action
// that solves it. It changes nothing and opens nothing itself: a Subject holds the parts to examine, of
// a running portal or of a data folder alone.
package doctor

import (
	"context"
	"fmt"
	"net/http"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// Level is the severity of a Finding.
type Level string

// The levels. Only faults make a portal unhealthy.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing; the portal works
	Fault   Level = "fault"   // something does not work
	Skipped Level = "skipped" // could not be checked; the text has the reason
)

// Finding is one result, in sentences for the operator. Texts of other portals are included as they
// are: the code that displays a finding must escape them.
type Finding struct {
	Check string `json:"check"` // one of the Checks
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
}

// The parts of a portal, in the order of the checks.
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
	Agent       = "agent" // the agent of the Question
)

// Report is the result of an examination.
type Report struct {
	Healthy  bool      `json:"healthy"`
	Running  bool      `json:"running"`
	Findings []Finding `json:"findings"`
}

// maxEach bounds the findings of one kind: thousands of unreachable agents are one fact.
const maxEach = 10

// Add adds a finding.
func (r *Report) Add(check string, level Level, do, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{check, level, fmt.Sprintf(format, args...), do})
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
	Agent  string // its name
	Portal string // the other portal's id, host or address; empty examines this one alone
}

// Subject is the portal to examine. A nil field is not available and its check is skipped.
type Subject struct {
	Dir     string // its data folder
	Running bool
	// URL is the address for others, Listen the address that the portal listens on. Proxies is true if
	// the portal trusts the forwarding headers of any proxy.
	URL, Listen string
	Proxies     bool
	Network     string // empty: none
	ID          record.PortalID
	Keyring     Keyring
	// Peers has the other portals; PeersError is the reason why they cannot be read.
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
}

// Keyring returns the state of keys and card: control.Keyring.
type Keyring interface {
	Keys(ctx context.Context) (federation.SelfStanding, error)
}

// PeerList has the other portals, as the operator sees them, and the rule for exported agents: federation.Peers.
type PeerList interface {
	Portals(ctx context.Context) []federation.Peer
	Exports(tags, languages []string) bool
}

// AgentList calls yield with each agent of the portal until it returns false: the store's Hub.
type AgentList interface {
	AllAgents(ctx context.Context, yield func(hub.Agent) bool) error
}

// Publisher returns the publication state of an agent in the network: publish.Publisher.
type Publisher interface {
	Published(a hub.Agent) federation.Published
}

// Databases checks the database files and adds findings to the report: control.Databases.
type Databases interface {
	CheckFiles(ctx context.Context, r *Report)
}

// listPeers returns the other portals. The list is empty if the portal has none or they are not available.
func (s Subject) listPeers(ctx context.Context) ([]federation.Peer, error) {
	if s.PeersError != nil || s.Peers == nil {
		return []federation.Peer{}, s.PeersError
	}
	return s.Peers.Portals(ctx), nil
}

// knowsPeers reports whether the other portals, or the reason why they cannot be read, are available.
func (s Subject) knowsPeers() bool { return s.Peers != nil || s.PeersError != nil }

// Examine examines a portal, or answers a question.
func Examine(ctx context.Context, s Subject, q Question) Report {
	r := Report{Running: s.Running, Findings: []Finding{}}
	if q.Agent != "" {
		s.traceAgent(ctx, &r, q)
		r.Judge()
		return r
	}
	s.checkFolder(&r)
	if s.Databases != nil {
		s.Databases.CheckFiles(ctx, &r)
	}
	s.checkSettings(&r)
	s.checkReach(ctx, &r)
	s.checkKeys(ctx, &r)
	s.checkPeers(ctx, &r)
	s.checkDHT(ctx, &r)
	s.checkGossip(ctx, &r)
	s.checkAgents(ctx, &r)
	r.Judge()
	return r
}

// cappedFindings adds at most maxEach findings of one kind, and then the number of further ones.
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
