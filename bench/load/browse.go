package main

import (
	"fmt"
	"net/http"
	"net/url"

	"agentsite/bench/corpus"
)

// pageBar is what a page may cost, in floors: the same page from views that
// are there before.
const pageBar = 2

// browse compares lists for somebody who is signed in: nothing is kept of
// those.
func (b *bench) browse() error {
	one := func(s *server, path func(i int) string, cookie string) *side {
		return &side{server: s, load: load{workers: 64, during: b.round, status: http.StatusOK, request: func(addr string, worker, i int) []byte {
			return visit(addr, path(worker*7919+i), cookie)
		}}}
	}
	all := func(path string) func(int) string { return func(int) string { return path } }
	words := func(path string) func(int) string {
		return func(i int) string { return path + "?q=" + url.QueryEscape(corpus.Hard(i)) }
	}
	floor, portal := one(b.floor, all("/browse"), ""), one(b.portal, all("/agents"), b.data.session)
	if err := interleave(b.rounds, floor, portal); err != nil {
		return err
	}
	b.compare(fmt.Sprintf("browse page, 20 cards (%d kB; floor's %d kB), signed in, c=64", portal.size/1000, floor.size/1000), portal, floor, pageBar)
	floor, portal = one(b.floor, words("/browse"), ""), one(b.portal, words("/agents"), b.data.session)
	if err := interleave(b.rounds, floor, portal); err != nil {
		return err
	}
	b.compare(fmt.Sprintf("  the same by words, the hard mix, of 10k agents (%d kB; %d kB)", portal.size/1000, floor.size/1000), portal, floor, 0)
	return nil
}

// profile compares the pages of agents.
func (b *bench) profile() error {
	names := make([]string, 1000)
	for i := range names {
		names[i] = corpus.Agent(i).Name
	}
	one := func(s *server, path string) *side {
		return &side{server: s, load: load{workers: 64, during: b.round, status: http.StatusOK, request: func(addr string, worker, i int) []byte {
			return visit(addr, path+names[(worker*7919+i)%len(names)], "")
		}}}
	}
	floor, portal := one(b.floor, "/profile/"), one(b.portal, "/agents/")
	if err := interleave(b.rounds, floor, portal); err != nil {
		return err
	}
	b.compare(fmt.Sprintf("profile of an agent (%.1f kB; floor's %.1f kB), signed out, c=64", float64(portal.size)/1000, float64(floor.size)/1000), portal, floor, pageBar)
	return nil
}
