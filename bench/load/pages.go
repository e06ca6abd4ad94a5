package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"agentsite/bench/corpus"
)

const (
	// pageBar is the largest permitted cost of a page, as a ratio to the floor, which renders the same
	// page from values prepared before.
	pageBar = 2
	// textSize is the length of an ordinary message in bytes.
	textSize = 120
	// chatLength is the number of messages in the conversation that row talk reads.
	chatLength = 20_000
)

// pages compares the page of 20 agents for visitors and for a signed-in user. They differ because the
// portal caches rendered lists for visitors only.
func (b *bench) pages() error {
	x, err := b.makeBig()
	if err != nil {
		return err
	}
	for _, c := range []struct{ name, floor, cookie string }{{"signed out", "/agents", ""}, {"signed in", "/browse", x.data.session}} {
		l := load{workers: 64, during: b.Round, status: http.StatusOK}
		floor, portal := &side{server: x.floor, load: l}, &side{server: x.portal, load: l}
		floor.load.request, portal.load.request = get(c.floor, ""), get("/agents", c.cookie)
		name := func() string {
			return fmt.Sprintf("page of 20 cards, %s, c=64 (%d kB, floor's %d kB)", c.name, portal.size/1000, floor.size/1000)
		}
		if err := b.compare(name, floor, portal, pageBar, true); err != nil {
			return err
		}
	}
	return nil
}

// talk compares the page of 50 messages of a conversation, at its end and in its middle. The first
// request, which renders the Markdown, is not measured.
func (b *bench) talk() error {
	x, err := b.makeBig()
	if err != nil {
		return err
	}
	const room = "63" // the floor's conversation, one of its 64
	fill := load{workers: 1, each: 64, status: http.StatusCreated, request: func(addr string, _, i int) []byte {
		body, _ := json.Marshal(map[string]string{"client_id": fmt.Sprint("talk-", i), "text": corpus.Text(i, textSize)})
		return request(addr, "/rooms/"+room+"/messages", "", string(body))
	}}
	if _, err := x.floor.under(fill, false); err != nil {
		return err
	}
	for _, c := range []struct{ name, query string }{{"newest", ""}, {"in the middle", fmt.Sprintf("?before=%d", chatLength/2)}} {
		l := load{workers: 16, during: b.Round, status: http.StatusOK}
		floor, portal := &side{server: x.floor, load: l}, &side{server: x.portal, load: l}
		floor.load.request, portal.load.request = get("/rooms/"+room+"/chat", ""), get("/chat/"+x.data.rooms[0]+c.query, x.data.session)
		name := func() string {
			return fmt.Sprintf("page of 50 messages, %s, of %s, c=16 (%d kB, floor's %d kB)", c.name, short(chatLength), portal.size/1000, floor.size/1000)
		}
		if err := b.compare(name, floor, portal, pageBar, true); err != nil {
			return err
		}
	}
	return nil
}
