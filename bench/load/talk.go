package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"agentsite/bench/corpus"
	"agentsite/store"
)

// talk compares the page of a conversation at its end, in its middle and at
// its beginning, as one of its people sees it, with the same page of 50
// messages without what a portal does for it, which the bar is to, and with a
// plain page of them. Only the first visit to a place renders what was said there; what that
// costs, by visits to ever new places, no bar is for.
func (b *bench) talk(n int) error {
	p, err := seed(filepath.Join(b.work, "talk"), 2, 0)
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	if err := p.with(func(db *store.DB) error { return p.say(db, 0, n, textSize) }); err != nil {
		return fmt.Errorf("fill a conversation: %w", err)
	}
	s, err := start("portal", b.binary, serve(p.dir)...)
	if err != nil {
		return err
	}
	defer s.Stop()
	const room = "63" // that no other row uses
	fill := load{workers: 1, each: 64, status: http.StatusCreated, request: func(addr string, _, i int) []byte {
		body, _ := json.Marshal(map[string]string{"client_id": fmt.Sprint("talk-", i), "text": corpus.Text(i, textSize)})
		return request(addr, "/rooms/"+room+"/messages", "", string(body))
	}}
	if _, err := b.floor.under(fill, nil); err != nil {
		return err
	}
	one := func(s *server, path func(i int) string, cookie string) *side {
		return &side{server: s, load: load{workers: 16, during: b.round, status: http.StatusOK, request: func(addr string, worker, i int) []byte {
			return visit(addr, path(worker*7919+i), cookie)
		}}}
	}
	chat := "/chat/" + p.rooms[0]
	at := func(query string) func(int) string { return func(int) string { return chat + query } }
	floor := one(b.floor, func(int) string { return "/rooms/" + room + "/chat" }, "")
	plain := one(b.floor, func(int) string { return "/rooms/" + room }, "")
	for _, x := range []struct {
		what string
		path func(int) string
		bar  float64
	}{
		{fmt.Sprintf("page of a conversation of %d messages, its newest 50", n), at(""), pageBar},
		{"  50 in its middle", at(fmt.Sprintf("?before=%d", n/2)), pageBar},
		{"  its first 50", at("?before=51"), pageBar},
		{"  50 somewhere, ever another place", func(i int) string { return fmt.Sprintf("%s?before=%d", chat, 51+i*7919%(n-51)) }, 0},
	} {
		portal := one(s, x.path, p.session)
		if err := interleave(b.rounds, plain, floor, portal); err != nil {
			return err
		}
		b.compare(fmt.Sprintf("%s (%d kB; floor's %d kB), c=16", x.what, portal.size/1000, floor.size/1000), portal, floor, x.bar)
		b.compare(fmt.Sprintf("    the same to the plain page (%.1f kB)", float64(plain.size)/1000), portal, plain, 0)
	}
	return nil
}
