package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// settleWait bounds the time until portals find each other's agents, with settleForEach more
	// per portal.
	settleWait    = 30 * time.Second
	settleForEach = 2 * time.Second
	// mostWords bounds the statements that portals make about each other, because each portal
	// receives all of them.
	mostWords = 6
	// tellEvery is the minimum time between lines of progress, so that quick steps print none.
	tellEvery = 2 * time.Second
)

// wrongs are the two portals that fail on purpose: down becomes unreachable, liar signs
// contradicting heads. A nil one could not be started.
type wrongs struct{ down, liar *stranger }

// openWrongs starts both portals. The caller must call close, also after an error.
func openWrongs(ctx context.Context, hc *http.Client) (w wrongs, err error) {
	w.down, err = openStranger(ctx, "Old Pier", hc,
		agent{Name: "tide-table", Title: "Tide table",
			About: "High and low water at the old pier. Its portal is down in this demo, so it cannot be asked; what it signed is still found."},
		agent{Name: "fog-horn", Title: "Fog horn", About: "Says when the fog comes in at the old pier."})
	if err == nil {
		w.liar, err = openStranger(ctx, "Mirror Hall", hc,
			agent{Name: "gold-forecast", Title: "Gold forecast",
				About: "Knows the price of gold of tomorrow. Its portal is caught lying in this demo, so nobody is shown this agent."})
	}
	return w, err
}

// all returns the portals that were started.
func (w wrongs) all() (list []*stranger) {
	for _, s := range []*stranger{w.down, w.liar} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

func (w wrongs) close() {
	for _, s := range w.all() {
		s.close()
	}
}

// connectPortals connects the portals: each gets the address of the first one and learns the others
// from it. The agents are registered before, so that one exchange is enough.
func (f *federation) connectPortals(ctx context.Context) {
	if len(f.portals) < 2 {
		return
	}
	first := f.portals[0]
	var err error
	if f.wrongs, err = openWrongs(ctx, f.http); err != nil && ctx.Err() == nil {
		f.reportError("nothing goes wrong on purpose: %v", err)
	}
	var group errgroup.Group
	group.SetLimit(startingAtOnce)
	for _, p := range f.portals[1:] {
		group.Go(func() error {
			if err := p.clients[0].callAPI(ctx, http.MethodPost, "/peers", object{"url": first.url()},
				nil); err != nil && ctx.Err() == nil {
				f.reportError("%s does not join: %v", p.name, err)
			}
			return nil
		})
	}
	for _, s := range f.wrongs.all() {
		for _, p := range f.portals { // a stranger does not discover portals, so it joins each one
			if err := s.joinNetwork(ctx, p.url()); err != nil && ctx.Err() == nil {
				f.reportError("%s does not join: %v", s.name, err)
			}
		}
	}
	_ = group.Wait() // the functions return nil; they report errors on stderr
}

// awaitAgents waits until a search at each portal finds the agents of all portals. It returns their
// number, and an error if that takes longer than settleWait.
func (f *federation) awaitAgents(ctx context.Context) (agents int, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleWait+time.Duration(len(f.portals))*settleForEach)
	defer cancel()
	for _, p := range f.portals {
		n, err := p.countFound(ctx, "portal")
		if err != nil {
			return agents, err
		}
		agents += n
	}
	for _, s := range f.wrongs.all() {
		agents += len(s.log)
	}
	left := f.portals
	for {
		var behind []*portal
		fewest := agents
		for _, p := range left {
			n, err := p.countFound(ctx, "federation")
			if err != nil {
				return agents, fmt.Errorf("ask %s what it finds: %w", p.name, err)
			}
			if fewest = min(fewest, n); n < agents {
				behind = append(behind, p)
			}
		}
		if left = behind; len(left) == 0 {
			return agents, nil
		}
		f.printProgress("the portals hear of each other's agents, %d of %d so far", fewest, agents)
		if err := pauseFor(ctx, foundPoll+time.Duration(len(left))*5*time.Millisecond); err != nil {
			return agents, fmt.Errorf("%s not find all agents yet, and go on looking",
				plural(len(left), "portal")+" do")
		}
	}
}

// registeredKinds is a part of a query that excludes the built-in agents, because a portal finds
// only its own ones.
const registeredKinds = "&kind=a2a,link,mcp,openai,prompt"

// countFound returns the number of registered agents that a search at p finds. scope is "portal"
// for its own agents or "federation" for all.
func (p *portal) countFound(ctx context.Context, scope string) (int, error) {
	var page struct{ Total int }
	err := p.clients[0].callAPI(ctx, http.MethodGet, "/search?limit=1&scope="+scope+registeredKinds, nil, &page)
	return page.Total, err
}

// printProgress prints a line of progress, unless the last one was less than f.every ago.
func (f *federation) printProgress(format string, args ...any) {
	f.errs.Lock()
	defer f.errs.Unlock()
	if now := time.Now(); now.Sub(f.told) >= f.every {
		f.told, f.working = now, true
		fmt.Fprintf(f.stderr, "please wait: "+format+"\n", args...)
	}
}

// printResult prints the result of a step, if a line of progress was printed for the step.
func (f *federation) printResult(format string, args ...any) {
	f.errs.Lock()
	defer f.errs.Unlock()
	if f.working {
		f.working = false
		fmt.Fprintf(f.stderr, "done: "+format+"\n", args...)
	}
}

// makeHistory gives the network something to show: operators set policies and vouch for other
// portals, one portal becomes unreachable, and one signs contradicting heads.
func (f *federation) makeHistory(ctx context.Context) {
	n := len(f.portals)
	for i := range min(n, mostWords) {
		by, of := f.portals[i], f.portals[(i+1)%n]
		if by == of {
			continue
		}
		why := []string{"We have known each other since the harbour festival.", "They answer mail within the hour.",
			"Run by friends; we share a cellar.", "Their agents do what they say."}[i%4]
		peer := "/peers/" + url.PathEscape(hostOf(of.url()))
		if i == 0 {
			_ = by.clients[0].callAPI(ctx, http.MethodPatch, peer,
				object{"policy": "pin", "note": "Neighbours. Tell me when their keys change."}, nil)
		}
		_ = by.clients[0].callAPI(ctx, http.MethodPost, peer+"/attest", object{"verdict": "vouch", "reason": why}, nil)
	}
	if f.wrongs.liar != nil {
		_ = f.wrongs.liar.sendFork(ctx, f.portals[0].url())
	}
	if f.wrongs.down != nil {
		f.wrongs.down.close()
	}
}

func hostOf(origin string) string { return strings.TrimPrefix(origin, "http://") }
