package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/internal/testing/federationtest"
)

const (
	// generous is the time limit of a step whose result is only reported, so that a busy machine does
	// not fail the run.
	generous = 2 * time.Minute
	healed   = 2 * time.Minute // the judged limit for two halves to agree after they are joined
)

// plan holds the sizes of a run.
type plan struct {
	portals, register, changes int
	apart                      time.Duration // least time for which the halves are separated
	// short leaves out the steps that wait for timeouts of the portals, for tests.
	short bool
}

// halves are the words of agents that are registered in one half while it is separated. The words are
// unlike all others here, because a search corrects typing errors and would find agents of a similar
// word.
var halves = [2]string{"marzipan", "obsidian"}

// run does all steps in order and prints how long each took. The first failed step ends it.
func (w *world) run(ctx context.Context, p plan) error {
	for _, s := range []struct {
		what string
		do   func(context.Context, plan) error
		long bool
	}{
		{"start", w.begin, false},
		{"registered, then found by words everywhere", w.spread, false},
		{"a call through the HTTP/1.1 proxy", w.call, false},
		{"kill -9 and restart", w.killOne, false},
		{"partition and heal", w.partition, true},
		{"rolling restart", w.rolling, true},
		{"a portal that lies", w.lies, false},
	} {
		if s.long && p.short {
			continue
		}
		began := time.Now()
		if err := s.do(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		w.say("%6.1f s  %s", time.Since(began).Seconds(), s.what)
	}
	return nil
}

// begin starts all portals, the second one behind an old proxy, and waits until all know all agents.
func (w *world) begin(ctx context.Context, _ plan) error {
	if err := each(w.portals, func(p *portal) error { return errors.Join(p.serve(p.n == 1, nil), p.start()) }); err != nil {
		return err
	}
	if err := each(w.portals, (*portal).enrol); err != nil {
		return err
	}
	took, err := allEqual(ctx, "all know all", w.portals)
	w.say("          all %d know all after %.1f s", len(w.portals), took.Seconds())
	return err
}

// spread registers agents on the portals in turn and measures how long each takes to be found on all
// portals.
func (w *world) spread(ctx context.Context, p plan) error {
	var took []time.Duration
	for i := range p.register {
		word := fmt.Sprintf("zephyr%dq", i)
		if err := w.portals[i%len(w.portals)].register(fmt.Sprintf("spread-%d", i), "Knows "+word); err != nil {
			return err
		}
		t, err := allFind(ctx, w.portals, word, 1, generous)
		if err != nil {
			return err
		}
		took = append(took, slices.Max(t))
	}
	slices.Sort(took)
	w.say("          registered → found at all of %d: p50 %.2f s (bar 3), p99 %.2f s (bar 10), of %d", len(w.portals), took[len(took)/2].Seconds(), took[(len(took)*99+99)/100-1].Seconds(), len(took))
	return nil
}

// call asks the built-in calculator of the portal behind the old proxy from a portal in the other half,
// and the reverse.
func (w *world) call(context.Context, plan) error {
	last, old := w.portals[len(w.portals)-1], w.portals[1]
	for _, way := range [][2]*portal{{last, old}, {old, last}} {
		var answer struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := way[0].api("POST", "/v1/chat/completions", map[string]any{"model": "calc@" + way[1].host, "messages": []any{map[string]string{"role": "user", "content": "17.5 % of 2340"}}}, &answer); err != nil {
			return err
		}
		if len(answer.Choices) != 1 || !strings.Contains(answer.Choices[0].Message.Content, "409.5") {
			return fmt.Errorf("calc@%s answers %+v", way[1].host, answer)
		}
	}
	return nil
}

// killOne kills a portal in the middle of the chain, from which others learned of each other. An agent
// registered while it is dead must be found on it after its restart.
func (w *world) killOne(ctx context.Context, _ plan) error {
	dead := w.portals[len(w.portals)/2]
	others := slices.Concat(w.portals[:dead.n], w.portals[dead.n+1:])
	if err := dead.register("before-kill", "Knows lanternfish"); err != nil {
		return err
	}
	dead.kill()
	if err := w.portals[0].register("while-dead", "Knows kestrelling"); err != nil {
		return err
	}
	if _, err := allFind(ctx, others, "kestrelling", 1, generous); err != nil {
		return err
	}
	if err := dead.start(); err != nil {
		return err
	}
	took, err := allFind(ctx, []*portal{dead}, "kestrelling", 1, generous)
	if err != nil {
		return err
	}
	if _, err := allFind(ctx, w.portals, "lanternfish", 1, generous); err != nil {
		return err
	}
	w.say("          it has what it missed after %.1f s", took[0].Seconds())
	_, err = allEqual(ctx, "all know all", w.portals)
	return err
}

// partition disconnects the two halves for at least p.apart. Both must keep working, report the
// unreachable portals, and agree again after they are joined.
func (w *world) partition(ctx context.Context, p plan) error {
	half := [2][]*portal{}
	for _, p := range w.portals {
		k := w.spaces.half(p.n)
		half[k] = append(half[k], p)
	}
	for k, list := range half {
		for i := range 2 {
			if err := list[i].register(fmt.Sprintf("part-%d-%d", k, i), "Knows gloamingx"); err != nil {
				return err
			}
		}
	}
	if _, err := allFind(ctx, w.portals, "gloamingx", 4, generous); err != nil {
		return err
	}
	if err := w.spaces.cut(true); err != nil {
		return err
	}
	began := time.Now()
	for k, list := range half {
		for i := range p.changes {
			if err := list[i%len(list)].register(fmt.Sprintf("apart-%d-%d", k, i), "Knows tessellate "+halves[k]); err != nil {
				return err
			}
		}
		err := errors.Join(list[0].register(fmt.Sprintf("part-%d-0", k), "Knows bulrushes"), list[1].api("DELETE", fmt.Sprintf("/api/v1/agents/part-%d-1", k), nil, nil))
		if err != nil {
			return err
		}
	}
	for k, list := range half {
		if _, err := allFind(ctx, list, halves[k], p.changes, generous); err != nil {
			return err
		}
		if _, err := allFind(ctx, list, "bulrushes", 1, generous); err != nil {
			return err
		}
	}
	for k, list := range half {
		took, err := until(ctx, "who is silent", 5*time.Minute, func() error {
			for _, p := range list {
				f, err := p.search("calculator", "")
				if err != nil {
					return err
				}
				for _, other := range half[1-k] {
					if !slices.Contains(f.Portals.Silent, other.host) {
						return fmt.Errorf("%s does not call %s silent", p.host, other.host)
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		w.say("          half %d says who is silent %.1f s after the cut, and answers (looked for %.1f s)", k, time.Since(began).Seconds(), took.Seconds())
	}
	select {
	case <-time.After(time.Until(began.Add(p.apart))):
	case <-ctx.Done():
		return ctx.Err()
	}
	before := w.bytes()
	if err := w.spaces.cut(false); err != nil {
		return err
	}
	// Equal numbers of agents do not prove equal agents, so also search for the words of changed and
	// deleted ones.
	took, err := until(ctx, "all equal again", healed, func() error {
		if err := equal(w.portals); err != nil {
			return err
		}
		for word, n := range map[string]int{"tessellate": 2 * p.changes, "bulrushes": 2, "gloamingx": 0} {
			for _, p := range w.portals {
				if err := p.finds(word, n); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.say("          healed %.1f s after %.0f s apart (bar 120); %d kB were answered between portals", took.Seconds(), time.Since(began).Seconds()-took.Seconds(), (w.bytes()-before)/1000)
	return nil
}

// rolling restarts all portals, one after the other. Meanwhile the others must answer searches
// completely.
func (w *world) rolling(ctx context.Context, _ plan) error {
	total, err := w.portals[0].search("", "")
	if err != nil {
		return err
	}
	for _, p := range w.portals {
		if err := p.stop(); err != nil {
			return err
		}
		var all sync.WaitGroup
		errs := make([]error, len(w.portals))
		for i, other := range w.portals {
			if other == p {
				continue
			}
			all.Go(func() {
				f, err := other.search("", "")
				if errs[i] = err; err == nil && f.Total != total.Total {
					errs[i] = fmt.Errorf("%s knows %d agents of %d while %s is away", other.host, f.Total, total.Total, p.host)
				}
			})
		}
		all.Wait()
		if err := errors.Join(append(errs, p.start())...); err != nil {
			return err
		}
	}
	if err := w.portals[len(w.portals)-1].register("rolled", "Knows wheelwright"); err != nil {
		return err
	}
	if _, err := allFind(ctx, w.portals, "wheelwright", 1, generous); err != nil {
		return err
	}
	took, err := allEqual(ctx, "all know all", w.portals)
	w.say("          all equal %.1f s after the last", took.Seconds())
	return err
}

// lies adds a portal that is honest at first, then serves records with a wrong signature, and then
// signs two heads with one number. All portals must quarantine it.
func (w *world) lies(ctx context.Context, _ plan) error {
	e := w.evil
	at := make(map[string]string)
	for _, p := range w.portals {
		at[p.host] = address(p.n) + ":443"
	}
	client := w.clientBy(func(ctx context.Context, host string) (net.Conn, error) { return dial(ctx, e.space, at[host]) })
	liar, err := federationtest.NewLiar("agentsite-main", e.origin(), "evil", client)
	if err != nil {
		return err
	}
	if err := e.serve(false, liar); err != nil {
		return err
	}
	victim := w.portals[0]
	if err := errors.Join(liar.Publish("bait"), liar.Hello(ctx, victim.origin()), liar.Hint(ctx, victim.origin())); err != nil {
		return err
	}
	if _, err := allFind(ctx, w.portals, "bait", 1, generous); err != nil {
		return err
	}
	liar.Bend(true)
	if err := errors.Join(liar.Publish("switch"), liar.Hint(ctx, victim.origin())); err != nil {
		return err
	}
	type peer struct {
		State, Reason string
		Faults        map[string]int
	}
	peerOf := func(p *portal) (v peer, err error) {
		return v, p.api("GET", "/api/v1/peers/"+string(liar.Portal()), nil, &v)
	}
	if _, err := until(ctx, "what it did not sign is counted", generous, func() error {
		v, err := peerOf(victim)
		if err == nil && v.Faults["signature"] == 0 {
			err = fmt.Errorf("faults %v", v.Faults)
		}
		return err
	}); err != nil {
		return err
	}
	for _, p := range w.portals {
		if err := p.finds("switch", 0); err != nil {
			return err
		}
	}
	if err := liar.Fork(ctx, victim.origin()); err != nil {
		return err
	}
	out := func(list []*portal) func() error {
		return func() error {
			for _, p := range list {
				v, err := peerOf(p)
				if err != nil {
					return err
				}
				if v.State != "quarantined" || v.Reason == "" {
					return fmt.Errorf("%s has it as %+v", p.host, v)
				}
			}
			return nil
		}
	}
	first, err := until(ctx, "it is quarantined", generous, out(w.portals[:1]))
	if err != nil {
		return err
	}
	if _, err := allFind(ctx, w.portals[:1], "bait", 0, generous); err != nil {
		return err
	}
	took, err := until(ctx, "it is quarantined everywhere", generous, out(w.portals))
	if err != nil {
		return err
	}
	if _, err := allFind(ctx, w.portals, "bait", 0, generous); err != nil {
		return err
	}
	w.say("          quarantined after %.2f s, everywhere after %.2f s more", first.Seconds(), took.Seconds())
	_, err = allEqual(ctx, "the honest know all", w.portals)
	return err
}
