package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"agentsite/bench/report"
)

// flooders is how many requests of a flood are under way at the same time.
const flooders = 16

// errOver ends a flood before it has made all of its requests.
var errOver = errors.New("the flood is over")

// flood makes n requests and returns how many were accepted. A refusal is the right answer of a portal; only
// broken connections are errors, and a flood of which nothing was accepted.
func flood(n int, request func(i int) error) (accepted int, err error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		next  int
		fails []error
		last  *refused
	)
	for range flooders {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				err := request(i)
				if errors.Is(err, errOver) {
					return
				}
				refusal, isRefusal := errors.AsType[*refused](err)
				mu.Lock()
				switch {
				case err == nil:
					accepted++
				case isRefusal:
					last = refusal
				default:
					fails = append(fails, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(fails) > 0 {
		return accepted, fmt.Errorf("%d requests of the flood broke, the first one: %w", len(fails), fails[0])
	}
	if accepted == 0 {
		return 0, fmt.Errorf("nothing of the flood was accepted: %w", last)
	}
	return accepted, nil
}

// answerSlack is added to each bar of an answer's time. People do not feel 50 ms, and twice the few
// milliseconds of a built-in agent would be noise.
const answerSlack = 50 * time.Millisecond

// judgeFlood measures the ordinary user p alone, runs the flood, measures p again while its work is
// queued, and adds a line for each kind of agent. agents are the names of a built-in agent, of another
// one, and of the flooded one.
func (b *bench) judgeFlood(what string, s *site, p *person, flooding func() (int, error)) error {
	targets := []struct{ name, agent string }{{"built-in agent", builtinAgent}, {"another agent", quickAgent}, {"the flooded agent", slowAgent}}
	var askers []*ordinary
	var idle []time.Duration
	for _, t := range targets {
		o, err := s.ordinary(p, t.agent)
		if err != nil {
			return err
		}
		if _, err := o.measure(3); err != nil { // opens connections and fills caches
			return err
		}
		times, err := o.measure(b.Pick(3, probes))
		if err != nil {
			return fmt.Errorf("%s alone: %w", t.name, err)
		}
		askers, idle = append(askers, o), append(idle, report.Median(times))
	}
	began := time.Now()
	accepted, err := flooding()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "%s: %d accepted in %s\n", what, accepted, time.Since(began).Round(100*time.Millisecond))
	for i, t := range targets {
		times, err := askers[i].measure(b.Pick(3, probes))
		if err != nil {
			return fmt.Errorf("%s during %s: %w", t.name, what, err)
		}
		b.compare(what+": "+t.name, idle[i], report.Median(times), 2, answerSlack)
	}
	return nil
}

// floodByAccount lets one account ask 800 questions in 50 conversations.
func (b *bench) floodByAccount() error {
	s, people, err := b.open(1)
	if err != nil {
		return err
	}
	defer s.stop()
	return b.judgeFlood("one account asks 800", s, people[2], func() (int, error) { return s.askMany(people[3:], 50, 800) })
}

// askMany lets people ask the slow agent n questions in all, each of them in rooms of its own.
func (s *site) askMany(people []*person, rooms, n int) (int, error) {
	type place struct {
		p  *person
		id string
	}
	var places []place
	for i := range rooms {
		p := people[i%len(people)]
		id, err := s.room(p, slowAgent)
		if _, isRefusal := errors.AsType[*refused](err); isRefusal && len(places) > 0 {
			break
		}
		if err != nil {
			return 0, err
		}
		places = append(places, place{p, id})
	}
	return flood(n, func(i int) error {
		at := places[i%len(places)]
		return s.say(at.p, at.id, "one more question", slowAgent)
	})
}

// floodInRoom lets one account ask 600 questions in one room.
func (b *bench) floodInRoom() error {
	s, people, err := b.open(1)
	if err != nil {
		return err
	}
	defer s.stop()
	return b.judgeFlood("600 in one room", s, people[2], func() (int, error) { return s.askMany(people[3:], 1, 600) })
}

// floodByAccounts lets 20 accounts ask 40 questions each.
func (b *bench) floodByAccounts() error {
	s, people, err := b.open(20)
	if err != nil {
		return err
	}
	defer s.stop()
	return b.judgeFlood("20 accounts ask 800", s, people[2], func() (int, error) { return s.askMany(people[3:], 100, 800) })
}

// floodByGuest lets one visitor mention 9 agents in each of 63 messages.
func (b *bench) floodByGuest() error {
	s, people, err := b.open(0)
	if err != nil {
		return err
	}
	defer s.stop()
	names, mentions := []string{slowAgent}, "@"+slowAgent
	for i := range 8 {
		name := fmt.Sprintf("slow-%d", i)
		if err := s.register(people[1], name, slowAgent); err != nil {
			return err
		}
		names, mentions = append(names, name), mentions+" @"+name
	}
	g := guest("203.0.113.7")
	return b.judgeFlood("a guest's 567 mentions", s, people[2], func() (int, error) {
		id, err := s.room(g, names...)
		if err != nil {
			return 0, err
		}
		ask := func(int) error { return s.say(g, id, mentions+" what do you say?", names...) }
		// The first one alone: of many at the same time each takes a part of what one of them needs.
		if err := ask(0); err != nil {
			return 0, err
		}
		accepted, err := flood(62, ask)
		if _, isRefusal := errors.AsType[*refused](err); isRefusal {
			err = nil
		}
		return accepted + 1, err
	})
}

// floodBySubnet lets 100 visitors from one /64 ask 8 questions each.
func (b *bench) floodBySubnet() error {
	s, people, err := b.open(0)
	if err != nil {
		return err
	}
	defer s.stop()
	var guests []*person
	for i := range 100 {
		guests = append(guests, guest(fmt.Sprintf("2001:db8:0:7::%x", i+1)))
	}
	return b.judgeFlood("100 guests of one /64", s, people[2], func() (int, error) { return s.askMany(guests, 8, 800) })
}

// floodByPortal lets the accounts of another portal ask 800 questions.
func (b *bench) floodByPortal() error {
	s, people, err := b.open(0, "--network", "abuse")
	if err != nil {
		return err
	}
	defer s.stop()
	far, hostile, err := b.open(20, "--network", "abuse", "--join", "http://"+s.Addr)
	if err != nil {
		return err
	}
	defer far.stop()
	agent := slowAgent + "@" + s.Addr
	var rooms []string
	for _, p := range hostile[3:] {
		id, err := far.room(p, agent)
		for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); id, err = far.room(p, agent) {
			time.Sleep(200 * time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("the other portal does not find %s: %w", agent, err)
		}
		rooms = append(rooms, id)
	}
	return b.judgeFlood("a portal asks 800", s, people[2], func() (int, error) {
		return flood(800, func(i int) error { return far.say(hostile[3+i%20], rooms[i%20], "one more question") })
	})
}
