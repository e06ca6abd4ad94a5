package demo

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"agentsite/internal/ident"
)

const (
	// foundWait bounds the time until an agent of another portal is known.
	foundWait = 30 * time.Second
	foundPoll = 100 * time.Millisecond
	// The first quickCalls come at quickPace, so that the user sees activity at once; after that
	// they come at slowPace.
	quickCalls = 40
	quickPace  = 2 * time.Second
	slowPace   = 15 * time.Second
	// roomsEach is the number of conversations of an account.
	roomsEach = 3
)

// traffic simulates users who talk to agents, at their own and at other portals.
type traffic struct {
	people []*person
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// person is one simulated user. It does one thing at a time.
type person struct {
	client
	operator bool
	talks    []talk
}

// talk is a conversation with one agent.
type talk struct {
	agent, title string
	asks         []string
	room         string // empty until it has started
	asked        int
}

// newTraffic gives each person conversations: one at the own portal, the others at the following
// portals.
func newTraffic(portals []*portal) *traffic {
	t := new(traffic)
	for i, p := range portals {
		for k, c := range p.clients {
			m := &person{client: c, operator: k == 0}
			for n := range roomsEach {
				at := portals[(i+(k+1)*n)%len(portals)]
				m.talks = append(m.talks, at.pickTopic(k+n))
			}
			t.people = append(t.people, m)
		}
	}
	return t
}

// pickTopic returns a conversation with one of the portal's agents.
func (p *portal) pickTopic(n int) talk {
	if n %= p.countAgents(); n < len(p.agents) {
		a := p.agents[n]
		return talk{agent: p.agentHandle(a.name), title: a.title, asks: a.asks}
	}
	s := p.benches[n-len(p.agents)]
	m := talk{agent: p.agentHandle(s.name), title: s.title}
	for _, t := range s.tools {
		m.asks = append(m.asks, t.name+" "+t.example)
	}
	return m
}

// startTraffic starts the traffic, after first. The caller calls close.
func (t *traffic) startTraffic(ctx context.Context, first func(context.Context)) {
	ctx, t.cancel = context.WithCancel(ctx)
	t.ended.Go(func() {
		first(ctx)
		t.startTalks(ctx)
		t.keepAsking(ctx)
	})
}

func (t *traffic) close() {
	t.cancel()
	t.ended.Wait()
}

// startTalks starts all conversations. Failed calls are left out: a portal may be down.
func (t *traffic) startTalks(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(startingAtOnce)
	for _, m := range t.people {
		group.Go(func() error {
			for i := range m.talks {
				m.askNext(ctx, &m.talks[i])
			}
			return nil
		})
	}
	group.Wait()
}

// keepAsking asks at intervals, until ctx ends. The operators do not ask, so that the user who opens
// their link finds the conversations unchanged.
func (t *traffic) keepAsking(ctx context.Context) {
	pace := quickPace
	for n := 0; pause(ctx, pace) == nil; n++ {
		if n == quickCalls {
			pace = slowPace
		}
		m := t.people[rand.IntN(len(t.people))]
		if !m.operator {
			m.askNext(ctx, &m.talks[rand.IntN(len(m.talks))])
		}
	}
}

// askNext asks the next question of a conversation, which starts with the first.
func (m *person) askNext(ctx context.Context, t *talk) error {
	if t.room == "" {
		if err := m.waitFor(ctx, t.agent); err != nil {
			return err
		}
		var room struct{ ID string }
		if err := m.call(ctx, http.MethodPost, "/conversations", object{"title": t.title, "members": []string{t.agent}}, &room); err != nil {
			return err
		}
		t.room = room.ID
	}
	text := t.asks[t.asked%len(t.asks)]
	t.asked++
	return m.call(ctx, http.MethodPost, "/conversations/"+t.room+"/messages", object{"client_id": ident.NewID(), "text": text}, nil)
}

// waitFor waits until the person's portal knows an agent.
func (m *person) waitFor(ctx context.Context, agent string) error {
	ctx, cancel := context.WithTimeout(ctx, foundWait)
	defer cancel()
	for {
		err := m.call(ctx, http.MethodGet, "/agents/"+url.PathEscape(agent), nil, nil)
		if err == nil {
			return nil
		}
		if pause(ctx, foundPoll) != nil {
			return err
		}
	}
}
