package peering

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
	"agentsite/internal/hub"
	"agentsite/internal/record"
)

const (
	// maxNoted bounds the agents of which it is remembered which handle means
	// them.
	maxNoted = 1024
	// openedFor is for how long an agent that was opened is not asked for again.
	openedFor = time.Minute
)

// opened remembers what was found, so that it can be opened by its handle.
type opened struct {
	mu   sync.Mutex // guards the rest
	list map[string]opening
}

// opening is an agent that was found. It counts until until; afterwards only
// the id in it does.
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
		for other := range o.list { // any: it is asked for again
			delete(o.list, other)
			break
		}
	}
	o.list[key] = opening{f, until}
}

// note remembers the id of an agent that was found.
func (o *opened) note(f found) { o.put(f, time.Time{}) }

func (o *opened) get(name, host string) (opening, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, ok := o.list[name+"@"+host]
	return f, ok
}

// open returns an agent of a portal that is not wholly held, by its handle: as
// it is there now. The portal is asked for the agent that an earlier search
// found, else for one of that name.
func (s *Searcher) open(ctx context.Context, name, host string) (f found, err error) {
	var from federation.Peer
	for _, p := range s.Catalog.partly() {
		if p.Host() == host && s.Registry.Decide(ctx, p.ID, p.URL).Show {
			from = p
			break
		}
	}
	if from.ID == "" {
		return f, errNotThere
	}
	ctx, cancel := context.WithCancel(ctx) // see memo.ask
	defer cancel()
	timer := time.AfterFunc(lateFor, cancel)
	defer timer.Stop()
	now := clock.Now()
	o, known := s.opened.get(name, host)
	if known && o.record.Portal == from.ID {
		if now.Before(o.until) {
			return o.found, nil
		}
		f, err = s.fetch(ctx, from, o.ID)
	} else {
		f, err = s.named(ctx, from, name)
	}
	if err == nil && (f.Name != name || f.Portal != host) {
		err = errNotThere
	}
	if err == nil {
		s.opened.put(f, now.Add(openedFor))
	}
	return f, err
}

// named looks for the agent of a name.
func (s *Searcher) named(ctx context.Context, p federation.Peer, name string) (found, error) {
	body, err := json.Marshal(federation.SearchQuestion{Text: name, Limit: federation.MaxFound})
	if err != nil {
		return found{}, err
	}
	list, err := s.ask(ctx, p, body)
	if err != nil {
		return found{}, err
	}
	for _, f := range list {
		if f.Name == name {
			return f, nil
		}
	}
	return found{}, errNotThere
}

// errNotThere is of an agent that its portal does not list.
var errNotThere = errors.New("it is not there")

// fetch asks a portal for the newest record of an agent by its id in the network.
func (s *Searcher) fetch(ctx context.Context, p federation.Peer, id string) (f found, err error) {
	path := fmt.Sprintf("/peering/v1/agents/%s/%s", p.ID, strings.TrimPrefix(id, string(p.ID)+"/"))
	a, err := s.Caller.Do(ctx, p.URL, p.ID, http.MethodGet, path, nil, maxAnswer)
	if err != nil {
		return f, err
	}
	if a.Status == http.StatusNotFound {
		return f, errNotThere
	}
	if a.Status != http.StatusOK {
		return f, fmt.Errorf("it answers with status %d", a.Status)
	}
	var in federation.Proven
	if err := json.Unmarshal(a.Body, &in); err != nil {
		s.Registry.Fault(p.ID, "malformed")
		return f, errors.New("its answer cannot be read")
	}
	head, err := s.head(ctx, p.ID, in.Head)
	if err != nil {
		return f, err
	}
	list, err := s.verify(ctx, p, head, []federation.Hit{{Record: in.Record, Proof: in.Proof}})
	if err != nil {
		return f, err
	}
	if len(list) == 0 || list[0].ID != id {
		return f, errors.New("it is not shown here")
	}
	return list[0], nil
}

// partly are the portals that may be shown and whose agents are not all held.
func (c *Catalog) partly() []federation.Peer { return c.view.Load().partly }

// asShown is an agent that is not held as it is shown.
func (c *Catalog) asShown(card *record.Card, p federation.Peer, r *record.Record) (hub.Agent, error) {
	body, ok := r.Body.(*record.Agent)
	if !ok || c.cfg.Imports != nil && !c.cfg.Imports(body) {
		return hub.Agent{}, errors.New("it is not shown here")
	}
	now := clock.Now()
	return c.agent(card, r, body, shown{host: p.Host(), verified: !p.Proved.IsZero() && now.Sub(p.Proved) < provedFor})
}
