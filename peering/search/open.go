package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

const (
	// maxNoted bounds the agents in opened; beyond it arbitrary ones are dropped.
	maxNoted = 1024
	// openedFor is how long an agent that Open returned is not requested again.
	openedFor = time.Minute
)

// opened caches agents that a search found, by handle (name@host). It is safe for concurrent use.
type opened struct {
	mu   sync.Mutex // guards the fields below
	list map[string]opening
}

// opening is a cached agent. Before until the whole agent is current; afterwards only its id may be used,
// to request its newest record.
type opening struct {
	found
	until time.Time
}

func (o *opened) put(f found, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.list == nil {
		o.list = make(map[string]opening)
	}
	key := f.Name + "@" + f.Portal
	if _, ok := o.list[key]; !ok && len(o.list) >= maxNoted {
		for other := range o.list { // remove an arbitrary one: it is requested again
			delete(o.list, other)
			break
		}
	}
	o.list[key] = opening{f, until}
}

// note caches an agent from a search result; only its id may be used later.
func (o *opened) note(f found) { o.put(f, time.Time{}) }

func (o *opened) get(name, host string) (opening, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, ok := o.list[name+"@"+host]
	return f, ok
}

// errSilent is returned for a portal that did not answer at all.
var errSilent = errors.New("it does not answer")

// Open returns the current state of an agent of a portal that is not fully replicated, by its handle. It
// asks that portal: by the id that an earlier search found, otherwise by the name. If the portal does not
// answer, it asks index portals for their records, and asks them first if the portal did not answer lately.
// It returns errNotThere if the agent does not exist.
func (s *Searcher) Open(ctx context.Context, name, host string) (f found, err error) {
	var from federation.Peer
	for _, p := range s.Catalog.Partial() {
		if p.Host() == host && s.Registry.Decide(ctx, p.ID, p.URL).Show {
			from = p
			break
		}
	}
	if from.ID == "" {
		return f, errNotThere
	}
	now := clock.Now()
	var id string // network id from an earlier search; "" if unknown
	if o, known := s.opened.get(name, host); known && o.Record.Portal == from.ID {
		if now.Before(o.until) {
			return o.found, nil
		}
		id = o.ID
	}
	ask := []federation.Peer{from}
	for _, p := range s.listIndexes(ctx, hub.Query{Text: name}) {
		if p.ID != from.ID {
			ask = append(ask, p)
		}
	}
	if from.Mute() {
		ask = append(ask[1:], from)
	}
	err = errNotThere
	for _, via := range ask {
		f, err = s.openBy(ctx, via, from, name, id, lateFor/time.Duration(len(ask)))
		if err == nil && (f.Name != name || f.Portal != host) {
			err = errNotThere
		}
		if err == nil {
			s.opened.put(f, now.Add(openedFor))
			return f, nil
		}
		if via.ID == from.ID && !errors.Is(err, errSilent) {
			break // the portal answered for its own agent, so index portals cannot know better
		}
	}
	return found{}, err
}

// openBy asks one portal (via) for an agent of another (of), or of itself: by the agent's network id, or by
// name if id is "". The request ends after most.
func (s *Searcher) openBy(ctx context.Context, via, of federation.Peer, name, id string, most time.Duration) (found,
	error) {
	ctx, cancel := context.WithCancel(ctx) // canceled by a timer, not a deadline, see memo.joinRequest
	defer cancel()
	timer := time.AfterFunc(most, cancel)
	defer timer.Stop()
	if id != "" {
		return s.fetchAgent(ctx, via, of, id)
	}
	return s.findNamed(ctx, via, of, name)
}

// findNamed searches the portal via for the agent of that name at the portal of; errNotThere if there is
// none.
func (s *Searcher) findNamed(ctx context.Context, via, of federation.Peer, name string) (found, error) {
	q := federation.SearchQuestion{Text: name, Limit: federation.MaxFound}
	if via.ID != of.ID {
		q.Of, q.Portals = federation.OfAll, []string{of.Host()}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return found{}, err
	}
	list, err := s.askPortal(ctx, inquiry{Peer: via, body: body, all: via.ID != of.ID})
	if err != nil {
		return found{}, err
	}
	for _, f := range list {
		if f.Name == name && f.Record.Portal == of.ID {
			return f, nil
		}
	}
	return found{}, errNotThere
}

// errNotThere is returned for an agent that its portal does not list.
var errNotThere = errors.New("it is not there")

// fetchAgent asks the portal via for the newest record of an agent of the portal of, by its network id, and
// verifies the record with its proof. It returns errNotThere if the portal does not list the agent.
func (s *Searcher) fetchAgent(ctx context.Context, via, of federation.Peer, id string) (f found, err error) {
	path := fmt.Sprintf("/peering/v1/agents/%s/%s", of.ID, strings.TrimPrefix(id, string(of.ID)+"/"))
	a, err := s.Caller.Do(ctx, via.URL, via.ID, http.MethodGet, path, nil, maxAnswer)
	if err != nil {
		return f, fmt.Errorf("%w: %w", errSilent, err)
	}
	if a.Status == http.StatusNotFound {
		return f, errNotThere
	}
	if a.Status != http.StatusOK {
		return f, fmt.Errorf("it answers with status %d", a.Status)
	}
	var in archive.Proven
	if err := json.Unmarshal(a.Body, &in); err != nil {
		s.Registry.Fault(via.ID, "malformed")
		return f, errors.New("its answer cannot be read")
	}
	l := lister{Peer: of}
	told := federation.Told{Head: in.Head}
	if via.ID != of.ID {
		told.Card = in.Card
		portal, keys, err := s.readClaim(told)
		if err == nil && portal != of.ID {
			err = &record.Refused{Reason: record.NotConsistent,
				Text: "it answers for another portal than it was asked for"}
		}
		if err != nil {
			s.blamePortal(via.ID, err)
			return f, err
		}
		l.keys = keys
	}
	if l.head, err = s.admitHead(ctx, via.ID, of.ID, told); err != nil {
		return f, err
	}
	list, err := s.verifyHits(ctx, via, map[record.PortalID]lister{of.ID: l},
		[]federation.Hit{{Record: in.Record, Proof: in.Proof}})
	if err != nil {
		return f, err
	}
	if len(list) == 0 || list[0].ID != id {
		return f, errors.New("it is not shown here")
	}
	return list[0], nil
}
