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
	// drillPause is how long people may look at the pages before the drill begins.
	drillPause = 15 * time.Second
	// drillWait is how long those that are left may take to find each other's
	// agents, with more for many.
	drillWait = 90 * time.Second
	// A newcomer joins for so many that died.
	diedEach = 5
)

// runDrill kills portals all at once, has newcomers join that know one of those
// that are left, and says when all of these find each other's agents.
func (f *federation) runDrill(ctx context.Context, cfg Config, stdout io.Writer) {
	kill := cfg.Kill
	if !cfg.soon && pauseFor(ctx, drillPause) != nil {
		return
	}
	// The first stays: it is the one that people look at.
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

// findEach waits until each portal finds the agents of each other portal, and returns the number of
// searches.
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

// findsOf counts the agents of another portal that a search finds.
func (p *portal) findsOf(ctx context.Context, other *portal) (int, error) {
	var page struct{ Total int }
	err := p.clients[0].callAPI(ctx, http.MethodGet,
		"/search?limit=1&scope=federation"+registeredKinds+"&portal="+url.QueryEscape(hostOf(other.url())), nil, &page)
	return page.Total, err
}

// killPortal ends a portal like a power cut: without notice to the others.
func (p *portal) killPortal() {
	p.killed.Store(true)
	p.app.Vanish()
	_ = p.stopPortal()
}
