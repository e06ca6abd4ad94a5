package demo

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

const (
	// drillPause is the time for looking at the pages before the drill begins.
	drillPause = 15 * time.Second
	// drillWait bounds the time until the remaining portals find each other's agents, with
	// settleForEach more per portal.
	drillWait = 90 * time.Second
	// One newcomer joins for each diedEach killed portals, at least one.
	diedEach = 5
)

// runDrill kills cfg.Kill portals at once and starts newcomers that know one remaining portal each.
// It prints when all of these find each other's agents, or reports that it took too long.
func (f *federation) runDrill(ctx context.Context, cfg Config, stdout io.Writer) {
	kill := cfg.Kill
	if !cfg.soon && pauseFor(ctx, drillPause) != nil {
		return
	}
	// The first portal is never killed, because its pages are the ones that the user was asked to
	// open.
	var left []*portal
	order := rand.Perm(len(f.portals) - 1)
	for i, k := range order {
		p := f.portals[k+1]
		if i < kill {
			p.killPortal()
		} else {
			left = append(left, p)
		}
	}
	left = append([]*portal{f.portals[0]}, left...)
	began := time.Now()
	fmt.Fprintf(stdout, "%s died at once, without a word; %d are left. %s/network shows it.\n", plural(kill, "portal"),
		len(left), f.portals[0].url())
	for i := range max(1, kill/diedEach) {
		r := castRoles(i + 1)[i]
		r.name, r.folder = "New "+r.name, "new-"+r.folder
		p, err := f.startOne(ctx, r)
		if err != nil {
			continue
		}
		f.newcomers = append(f.newcomers, p)
		via := left[len(left)-1-i%len(left)]
		if err := p.clients[0].callAPI(ctx, http.MethodPost, "/peers", object{"url": via.url()}, nil); err != nil &&
			ctx.Err() == nil {
			f.reportError("%s does not join: %v", p.name, err)
		}
		left = append(left, p)
	}
	fmt.Fprintf(stdout, "%s joined, each by the address of one that is left.\n", plural(len(f.newcomers), "newcomer"))
	n, err := f.findEach(ctx, left)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		f.reportError("%v", err)
		return
	}
	f.printResult("each portal finds the agents of all others")
	fmt.Fprintf(stdout, "all is found: at each of %d portals every agent of every one, %d times asked, %.1f s after the others died\n", len(left), n, time.Since(began).Seconds())
}

// findEach waits until a search at each portal finds all agents of each other portal. It returns
// the number of searches, and an error after drillWait.
func (f *federation) findEach(ctx context.Context, all []*portal) (asked int, err error) {
	ctx, cancel := context.WithTimeout(ctx, drillWait+time.Duration(len(all))*settleForEach)
	defer cancel()
	has := make([]int, len(all))
	for i, p := range all {
		if has[i], err = p.countFound(ctx, "portal"); err != nil {
			return asked, fmt.Errorf("ask %s what it has: %w", p.name, err)
		}
	}
	for at, p := range all {
		for i, other := range all {
			for other != p {
				n, err := p.findsOf(ctx, other)
				asked++
				if err == nil && n == has[i] {
					break
				}
				f.printProgress("%d of %s checked; %s finds %d of %d agents of %s so far", at,
					plural(len(all), "portal"), p.name, n, has[i], other.name)
				if pauseFor(ctx, foundPoll) != nil {
					return asked, fmt.Errorf("%s finds %d of %d agents of %s: %v", p.name, n, has[i], other.name, err)
				}
			}
		}
	}
	return asked, nil
}

// findsOf returns the number of agents of another portal that a search at p finds.
func (p *portal) findsOf(ctx context.Context, other *portal) (int, error) {
	var page struct{ Total int }
	err := p.clients[0].callAPI(ctx, http.MethodGet,
		"/search?limit=1&scope=federation"+registeredKinds+"&portal="+url.QueryEscape(hostOf(other.url())), nil, &page)
	return page.Total, err
}

// killPortal ends a portal without any notice to the other portals, as a power cut would.
func (p *portal) killPortal() {
	p.killed.Store(true)
	p.app.Vanish()
	_ = p.stopPortal()
}
