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
	// foundWait bounds the time until a portal knows an agent of another portal.
	foundWait = 30 * time.Second
	foundPoll = 100 * time.Millisecond
	// The first quickCalls questions are quickPace apart, so that a user sees activity at once.
	// Later ones are slowPace apart.
	quickCalls = 40
	quickPace  = 2 * time.Second
	slowPace   = 15 * time.Second
	// roomsEach is the number of portals with which a person has conversations.
	roomsEach = 3
)

// traffic simulates people that talk to agents of their own and of other portals.
type traffic struct {
	people []*person
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// person is one simulated person. Before startTraffic has opened its conversations only one
// goroutine uses it, and later only goOn does, so it has no lock.
type person struct {
	client
	operator bool
	talks    []talk
}

// talk is a conversation of a person with one agent.
type talk struct {
	agent, title string
	asks         []string
	room         string // id of the conversation, empty before it is created
	asked        int
}

// newTraffic plans the conversations of each person: with agents of the person's own portal and of
// two other portals.
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

// pickTopic returns a conversation with the agent or MCP server of p with index n, modulo their
// number. It is not created yet.
func (p *portal) pickTopic(n int) talk {
	if n %= p.countAgents(); n < len(p.agents) {
		a := p.agents[n]
		return talk{agent: p.handle(a.Name), title: a.Title, asks: a.Asks}
	}
	s := p.benches[n-len(p.agents)]
	m := talk{agent: p.handle(s.Name), title: s.Title}
	for _, t := range s.Tools {
		m.asks = append(m.asks, t.Name+" "+t.Example)
	}
	return m
}

// startTraffic starts a goroutine that calls first, opens the conversations and then asks questions
// until close is called.
func (t *traffic) startTraffic(ctx context.Context, first func(context.Context)) {
	ctx, t.cancel = context.WithCancel(ctx)
	t.ended.Go(func() {
		first(ctx)
		t.openTalks(ctx)
		t.goOn(ctx)
	})
}

func (t *traffic) close() {
	t.cancel()
	t.ended.Wait()
}

// openTalks creates the conversations of all people. Errors are ignored, because a portal may have
// failed.
func (t *traffic) openTalks(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(startingAtOnce)
	for _, m := range t.people {
		group.Go(func() error {
			for i := range m.talks {
				_ = m.askNext(ctx, &m.talks[i])
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return nil, because errors are ignored
}

// goOn asks one question from time to time, until ctx ends. Operators do not ask, so that a user
// that signs in as one finds unchanged conversations.
func (t *traffic) goOn(ctx context.Context) {
	pace := quickPace
	for n := 0; pauseFor(ctx, pace) == nil; n++ {
		if n == quickCalls {
			pace = slowPace
		}
		m := t.people[rand.IntN(len(t.people))]
		if !m.operator {
			_ = m.askNext(ctx, &m.talks[rand.IntN(len(m.talks))])
		}
	}
}

// askNext asks the next question of a conversation and creates the conversation before the first
// one.
func (m *person) askNext(ctx context.Context, t *talk) error {
	if t.room == "" {
		if err := m.findAgent(ctx, t.agent); err != nil {
			return err
		}
		var room struct{ ID string }
		if err := m.callAPI(ctx, http.MethodPost, "/conversations",
			object{"title": t.title, "members": []string{t.agent}}, &room); err != nil {
			return err
		}
		t.room = room.ID
	}
	text := t.asks[t.asked%len(t.asks)]
	t.asked++
	return m.callAPI(ctx, http.MethodPost, "/conversations/"+t.room+"/messages",
		object{"client_id": ident.NewID(), "text": text}, nil)
}

// findAgent waits until the person's portal knows an agent, for at most foundWait.
func (m *person) findAgent(ctx context.Context, agent string) error {
	ctx, cancel := context.WithTimeout(ctx, foundWait)
	defer cancel()
	for {
		err := m.callAPI(ctx, http.MethodGet, "/agents/"+url.PathEscape(agent), nil, nil)
		if err == nil {
			return nil
		}
		if pauseFor(ctx, foundPoll) != nil {
			return err
		}
	}
}
