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
	// settleWait is how long portals may take to find each other's agents,
	// with more for many.
	settleWait    = 30 * time.Second
	settleForEach = 2 * time.Second
	// mostWords bounds the rules that portals set for each other: each portal receives all.
	mostWords = 6
	// tellEvery is the minimum time between lines of progress, so that quick steps print none.
	tellEvery = 2 * time.Second
)

// wrongs are portals at which something goes wrong on purpose.
type wrongs struct{ down, liar *stranger }

// openWrongs makes them. The caller closes them.
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

// all are those that could be made.
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

// connectPortals connects the portals: each gets the address of the first, and learns of the others from it.
// They have registered their agents by then, so that one exchange is enough.
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
		for _, p := range f.portals { // it does not hear of others by itself
			if err := s.joinNetwork(ctx, p.url()); err != nil && ctx.Err() == nil {
				f.reportError("%s does not join: %v", s.name, err)
			}
		}
	}
	_ = group.Wait() // its functions return nil
}

// awaitAgents waits until each portal finds the agents of all, and says how far that
// is.
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

// registeredKinds leaves the built-in agents out of a search: each portal finds its own only.
const registeredKinds = "&kind=a2a,link,mcp,openai,prompt"

// countFound counts the registered agents that a search finds, of the portal or of all.
func (p *portal) countFound(ctx context.Context, scope string) (int, error) {
	var page struct{ Total int }
	err := p.clients[0].callAPI(ctx, http.MethodGet, "/search?limit=1&scope="+scope+registeredKinds, nil, &page)
	return page.Total, err
}

// printProgress prints progress from time to time, worded as work in progress.
func (f *federation) printProgress(format string, args ...any) {
	f.errs.Lock()
	defer f.errs.Unlock()
	if now := time.Now(); now.Sub(f.told) >= f.every {
		f.told, f.working = now, true
		fmt.Fprintf(f.stderr, "please wait: "+format+"\n", args...)
	}
}

// printResult prints the result, if progress was printed before.
func (f *federation) printResult(format string, args ...any) {
	f.errs.Lock()
	defer f.errs.Unlock()
	if f.working {
		f.working = false
		fmt.Fprintf(f.stderr, "done: "+format+"\n", args...)
	}
}

// makeHistory gives the network a history: operators set rules for other portals, one portal goes down, and
// one signs contradicting heads.
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
