package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/doctor"
	"agentsite/internal/egress"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// web answers by address; what is not there does not answer.
type web map[string]func() (status int, header http.Header, body string)

func (w web) RoundTrip(r *http.Request) (*http.Response, error) {
	f := w[r.URL.String()]
	if f == nil {
		return nil, &egress.Error{Code: egress.Connect, Host: r.URL.Host, Text: "the connection was refused"}
	}
	status, header, body := f()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func says(status int, body string) func() (int, http.Header, string) {
	return func() (int, http.Header, string) { return status, nil, body }
}

const self = record.PortalID("p1self")

// well is a portal without faults, and what it asks.
func well(t *testing.T, ahead time.Duration) (doctor.Subject, web) {
	w := web{"https://home.example/.well-known/agentsite": says(200, `{"network":"net","portal":"p1self","card":{"t":"portal/1"}}`)}
	var peers []federation.Peer
	for i := range 4 {
		id, origin := fmt.Sprint("p1peer", i), fmt.Sprintf("https://peer%d.example", i)
		peers = append(peers, federation.Peer{ID: record.PortalID(id), URL: origin, State: federation.Active, Agents: 2, Listed: 2, HeadIssued: time.Now()})
		w[origin+"/peering/v1/status"] = func() (int, http.Header, string) {
			return 200, http.Header{"Date": {time.Now().Add(ahead).UTC().Format(http.TimeFormat)}}, `{"portal":"` + id + `"}`
		}
	}
	dir := t.TempDir() // of a mode that others may read
	return doctor.Subject{Dir: dir, Running: true, URL: "https://home.example", Listen: "127.0.0.1:8080", Proxies: true, Network: "net", ID: self, Web: w,
		Keyring:   keyring{federation.SelfStanding{Expires: time.Now().Add(80 * 24 * time.Hour), Keys: []federation.SelfKey{{Signs: true}}}, nil},
		Peers:     peerList(peers),
		Agents:    agentList{{ID: "01A", Name: "ada", Visibility: hub.Public, Kind: hub.A2A, Liveness: hub.Liveness{State: hub.Alive}}},
		Publisher: publisher{Listed: true},
		Gossip:    gossip{Running: true, By: "https", Members: 3, Gone: 1, Sent: 90, Failed: 9},
		DHT:       dht{standing: federation.DHTStanding{Nodes: 4, Size: 5, Keys: 3, Sent: 200, Failed: 20}},
	}, w
}

// keyring is a doctor.Keyring with one state.
type keyring struct {
	standing federation.SelfStanding
	err      error
}

func (k keyring) Keys(context.Context) (federation.SelfStanding, error) { return k.standing, k.err }

// peerList is a doctor.PeerList that exports all agents.
type peerList []federation.Peer

func (l peerList) Portals(context.Context) []federation.Peer { return l }
func (l peerList) Exports(_, _ []string) bool                { return true }

// agentList is a doctor.AgentList.
type agentList []hub.Agent

func (l agentList) AllAgents(_ context.Context, yield func(hub.Agent) bool) error {
	for _, a := range l {
		if !yield(a) {
			break
		}
	}
	return nil
}

// publisher is a doctor.Publisher with one state for all agents.
type publisher federation.Published

func (p publisher) Published(hub.Agent) federation.Published { return federation.Published(p) }

// gossip is a federation.Gossip with one state.
type gossip federation.GossipStanding

func (g gossip) Standing() federation.GossipStanding { return federation.GossipStanding(g) }
func (g gossip) Alive(record.PortalID) bool          { return true }

// dht is a federation.DHT with one state and prepared answers; err fails lookups.
type dht struct {
	standing federation.DHTStanding
	answers  map[string]federation.DHTAnswer
	err      error
}

func (d dht) Standing() federation.DHTStanding { return d.standing }

func (d dht) Ask(_ context.Context, what string) (federation.DHTAnswer, error) {
	return d.answers[what], d.err
}

// Each thing that is wrong is a fault, or a note, that names it; all else is as
// in a portal that is well.
func TestExamine_NamesEachFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		change      func(s *doctor.Subject, w web)
		level       doctor.Level
		check, says string
		ahead       time.Duration
	}{
		{name: "well"},
		{name: "few files", level: doctor.Note, check: doctor.Settings, says: "may open 1024 files, which is enough for 512 connections", change: func(s *doctor.Subject, _ web) { s.Descriptors = 1024 }},
		{name: "clock set back", level: doctor.Note, check: doctor.Clock, says: "was set back by 1h0m0s at 2026-11-25", change: func(s *doctor.Subject, _ web) {
			s.SetBack = clock.SetBack{By: time.Hour, At: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
		}},
		{name: "clock", ahead: 40 * time.Second, level: doctor.Fault, check: doctor.Clock, says: "behind those of 4 other portals"},
		{name: "clock ahead", ahead: -40 * time.Second, level: doctor.Fault, check: doctor.Clock, says: "ahead of those of 4"},
		{name: "another answers", level: doctor.Fault, check: doctor.Reach, says: "is another one, p1other", change: func(_ *doctor.Subject, w web) {
			w["https://home.example/.well-known/agentsite"] = says(200, `{"network":"net","portal":"p1other","card":{}}`)
		}},
		{name: "proxy hides it", level: doctor.Fault, check: doctor.Reach, says: "answers 404 instead of this portal's card", change: func(_ *doctor.Subject, w web) {
			w["https://home.example/.well-known/agentsite"] = says(404, "no")
		}},
		{name: "not reached", level: doctor.Fault, check: doctor.Reach, says: "cannot be reached at its own address", change: func(_ *doctor.Subject, w web) {
			delete(w, "https://home.example/.well-known/agentsite")
		}},
		{name: "no proxy believed", level: doctor.Fault, check: doctor.Settings, says: "trusts no forwarding headers", change: func(s *doctor.Subject, _ web) { s.Proxies = false }},
		{name: "plain http", level: doctor.Fault, check: doctor.Settings, says: "portals use only https:// addresses", change: func(s *doctor.Subject, _ web) { s.URL = "http://home.example" }},
		{name: "keys", level: doctor.Fault, check: doctor.Keys, says: "no valid signing key", change: func(s *doctor.Subject, _ web) {
			s.Keyring = keyring{federation.SelfStanding{Expires: time.Now().Add(80 * 24 * time.Hour), Away: true}, nil}
		}},
		{name: "copy elsewhere", level: doctor.Fault, check: doctor.Keys, says: "Somewhere else somebody signs as this portal (at https://copy.example, since 2026-01-02 03:04 UTC).", change: func(s *doctor.Subject, _ web) {
			s.Keyring = keyring{federation.SelfStanding{Expires: time.Now().Add(80 * 24 * time.Hour), Keys: []federation.SelfKey{{Signs: true}},
				Elsewhere: &federation.Elsewhere{Origin: "https://copy.example", Since: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}}, nil}
		}},
		{name: "card ends", level: doctor.Fault, check: doctor.Keys, says: "The card must be renewed.", change: func(s *doctor.Subject, _ web) {
			s.Keyring = keyring{federation.SelfStanding{Expires: time.Now().Add(time.Hour), Away: true, Due: "The card must be renewed.", Keys: []federation.SelfKey{{Signs: true}}}, nil}
		}},
		{name: "keys unreadable", level: doctor.Fault, check: doctor.Keys, says: "torn", change: func(s *doctor.Subject, _ web) {
			s.Keyring = keyring{federation.SelfStanding{}, errors.New("torn")}
		}},
		{name: "one is silent", level: doctor.Note, check: doctor.Peers, says: "peer1.example does not answer", change: func(_ *doctor.Subject, w web) { delete(w, "https://peer1.example/peering/v1/status") }},
		{name: "one is another", level: doctor.Fault, check: doctor.Peers, says: "The portal at peer2.example (p1thief) is not the one", change: func(_ *doctor.Subject, w web) {
			w["https://peer2.example/peering/v1/status"] = says(200, `{"portal":"p1thief"}`)
		}},
		{name: "it lied", level: doctor.Fault, check: doctor.Peers, says: "liar.example (p1liar) is quarantined: two statements", change: known(federation.Peer{ID: "p1liar", URL: "https://liar.example", State: federation.Quarantined, Reason: "two statements"})},
		{name: "it lags", level: doctor.Fault, check: doctor.Replication, says: "A newer state of late.example has been waiting for 1h0m0s: refused since the start: omitted 3, json 1.",
			change: known(federation.Peer{ID: "p1late", URL: "https://late.example", State: federation.Active, Tier: record.TierLeaf, Lag: time.Hour, Faults: map[string]int{"json": 1, "omitted": 3}})},
		{name: "over its quota", level: doctor.Note, check: doctor.Replication, says: "big.example lists 9 agents, more than its quota", change: known(federation.Peer{ID: "p1big", URL: "https://big.example", State: federation.Active, Tier: record.TierLeaf, Listed: 9, Truncated: true})},
		{name: "gossip ended", level: doctor.Fault, check: doctor.Gossip, says: "does not run", change: func(s *doctor.Subject, _ web) {
			s.Gossip = gossip{By: ":7946", Failures: 3}
		}},
		{name: "nobody gossips", level: doctor.Fault, check: doctor.Gossip, says: "though 4 portals answered", change: func(s *doctor.Subject, _ web) {
			s.Gossip = gossip{Running: true, By: "https", Sent: 40, Failed: 40}
		}},
		{name: "gossip goes nowhere", level: doctor.Fault, check: doctor.Gossip, says: "30 of 40 requests of gossip failed", change: func(s *doctor.Subject, _ web) {
			s.Gossip = gossip{Running: true, By: "https", Members: 2, Sent: 40, Failed: 30}
		}},
		{name: "alone in the DHT", level: doctor.Fault, check: doctor.DHT, says: "No portal takes part in the DHT", change: func(s *doctor.Subject, _ web) {
			s.DHT = dht{standing: federation.DHTStanding{Sent: 60, Failed: 60}}
		}},
		{name: "nobody answers it", level: doctor.Fault, check: doctor.DHT, says: "Of 200 requests of the DHT 180 got no answer", change: func(s *doctor.Subject, _ web) {
			s.DHT = dht{standing: federation.DHTStanding{Nodes: 4, Size: 5, Keys: 3, Sent: 200, Failed: 180}}
		}},
		{name: "nothing in the DHT", level: doctor.Fault, check: doctor.DHT, says: "so it has no entries in the DHT", change: func(s *doctor.Subject, _ web) {
			s.DHT = dht{standing: federation.DHTStanding{Nodes: 4, Size: 5, Sent: 200}}
		}},
		{name: "dead agent", level: doctor.Fault, check: doctor.Agents, says: "The agent ada cannot be used: timed out", change: func(s *doctor.Subject, _ web) {
			s.Agents = agentList{{Name: "ada", Visibility: hub.Public, Kind: hub.A2A, Liveness: hub.Liveness{State: hub.Unreachable, Reason: "timed out"}}}
		}},
		{name: "not told of", level: doctor.Note, check: doctor.Agents, says: "The agent ada is not published: a tag", change: func(s *doctor.Subject, _ web) {
			s.Publisher = publisher{Why: "a tag"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, w := well(t, c.ahead)
			if c.change != nil {
				c.change(&s, w)
			}
			r := doctor.Examine(t.Context(), s, doctor.Question{})
			found := false
			for _, f := range r.Findings {
				switch {
				case f.Check == doctor.Data: // the folder of a test may be read by others
				case c.says != "" && f.Check == c.check && f.Level == c.level && strings.Contains(f.Text, c.says):
					if found = true; f.Do == "" {
						t.Errorf("it does not say what to do: %+v", f)
					}
				case f.Level == doctor.Fault:
					t.Errorf("it finds a fault that is none: %+v", f)
				}
			}
			if c.says != "" && !found {
				t.Errorf("it does not find it: %+v", r.Findings)
			}
			if r.Healthy && c.level == doctor.Fault {
				t.Error("it is called healthy")
			}
		})
	}
}

func known(p federation.Peer) func(*doctor.Subject, web) {
	return func(s *doctor.Subject, _ web) {
		s.Peers = append(s.Peers.(peerList), p)
	}
}

// A quick examination counts the agents that do not answer, in one note.
func TestExamine_QuickCountsSilentAgents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		owners []string
		want   string
	}{
		{nil, ""},
		{[]string{"ada"}, "1 agent of 1 person is not reachable."},
		{[]string{"ada", "ben", "ada", "ada", "ben", "ada"}, "6 agents of 2 people are not reachable."},
	} {
		s, _ := well(t, 0)
		list := agentList{{Name: "alive", Visibility: hub.Public, Kind: hub.A2A, OwnerID: "cy", Liveness: hub.Liveness{State: hub.Alive}}}
		for i, owner := range tt.owners {
			kind := hub.A2A
			if i%2 == 1 {
				kind = hub.Link
			}
			list = append(list, hub.Agent{Name: fmt.Sprint("a", i), Visibility: hub.Public, Kind: kind, OwnerID: owner,
				Liveness: hub.Liveness{State: hub.Unreachable}})
		}
		s.Agents = list
		got := ""
		for _, f := range doctor.Examine(t.Context(), s, doctor.Question{Quick: true}).Findings {
			if strings.Contains(f.Text, "reachable") || strings.Contains(f.Text, "cannot be used") || strings.Contains(f.Text, "not connected") {
				if got += f.Text; f.Level != doctor.Note || f.Do == "" {
					t.Errorf("%+v", f)
				}
			}
		}
		if got != tt.want {
			t.Errorf("%v: %q, want %q", tt.owners, got, tt.want)
		}
	}
}

// Thousands of the same are one thing to know.
func TestExamine_IsBounded(t *testing.T) {
	t.Parallel()
	s, _ := well(t, 0)
	var many agentList
	for i := range 5000 {
		many = append(many, hub.Agent{Name: fmt.Sprint("a", i), Visibility: hub.Public, Liveness: hub.Liveness{State: hub.Unreachable}})
	}
	s.Agents = many
	r := doctor.Examine(t.Context(), s, doctor.Question{})
	if len(r.Findings) > 40 {
		t.Errorf("%d findings", len(r.Findings))
	}
	for _, f := range r.Findings {
		if strings.Contains(f.Text, "and 4990 more") {
			return
		}
	}
	t.Error("it does not say how many others there are")
}
