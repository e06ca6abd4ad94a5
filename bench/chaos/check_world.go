package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// check compares the data with the results of all clients after a restart. It checks the current
// conversations and one older one, or all older ones when everywhere is set, at the end of a run.
func (w *world) check(base string, rng *rand.Rand, everywhere bool) []violation {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	rooms := append([]*room(nil), w.rooms...)
	if everywhere {
		rooms = append(rooms, w.olds...)
	} else if len(w.olds) > 0 {
		rooms = append(rooms, w.olds[rng.IntN(len(w.olds))])
	}
	how := []string{"sse", "websocket"}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, r := range rooms {
		who := r.people[rng.IntN(len(r.people))]
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := w.checkRoom(ctx, r, who, base, how[(i+w.stats.rounds)%2]); err != nil {
				if f, ok := errors.AsType[failure](err); ok {
					r.blame(f.kind, "%s", f.text)
				} else {
					r.blame(misbehaved, "%v", err)
				}
			}
		})
	}
	wg.Wait()
	var out []violation
	for _, r := range rooms {
		out = append(out, r.found...)
		r.found = nil
	}
	return append(out, w.checkOthers(ctx, base, rng, everywhere)...)
}

// checkRoom waits until no question in r is unanswered, compares the transcript with the results of the
// clients, and records violations in r.
func (w *world) checkRoom(ctx context.Context, r *room, who *account, base, how string) error {
	before, err := who.transcript(ctx, base, r.id, 0)
	if errors.Is(err, errStatus(404)) || errors.Is(err, errStatus(401)) {
		r.blame(lost, "the conversation, or the account %s, is gone", who.name)
		r.found = append(r.found, check(r.name(), r.ops, nil, r.streams)...)
		return nil
	}
	if err != nil {
		return err
	}
	now, s := before, stream{how: how, after: r.position(), began: time.Now()}
	if int64(len(before)) > s.after || waiting(r.ops, now) > 0 {
		fctx, cancel := context.WithTimeout(ctx, settleTimeout)
		err = who.follow(fctx, base, r.id, how, s.after, func(m message) bool {
			s.seen = append(s.seen, seen{m.seq, m.id, time.Now()})
			if m.seq > int64(len(now)) {
				now = append(now, m)
			}
			return m.seq < int64(len(now)) || waiting(r.ops, now) > 0
		})
		late := fctx.Err() != nil
		cancel()
		switch {
		case late && waiting(r.ops, now) == 0:
			r.blame(misread, "a %s reader after %d was told only %d messages in %s; the transcript ends at %d", how, s.after, len(s.seen), settleTimeout, len(now))
		case late: // checkAnswers reports the questions without an answer
		case err != nil:
			return err
		}
	}
	r.streams = append(r.streams, s)
	after, err := who.transcript(ctx, base, r.id, 0)
	if err != nil {
		return err
	}
	for i, m := range before {
		if i >= len(after) || after[i] != m {
			r.blame(changed, "seq %d was read twice and differs", m.seq)
			break
		}
	}
	found := check(r.name(), r.ops, after, r.streams)
	r.found = append(r.found, found...)
	for i := range r.streams {
		w.note(func(s *stats) { s.seen += len(r.streams[i].seen) })
	}
	answers := make(map[string]string)
	for _, m := range after {
		if m.fromAgent {
			answers[m.task] = m.state
		}
	}
	was := r.verified
	for _, m := range after {
		if m.fromAgent && m.seq > was {
			w.note(func(s *stats) { s.answers++ })
		}
	}
	r.verified, r.streams = int64(len(after)), []stream{{how: how, after: int64(len(after))}}
	unknowns := 0
	for _, o := range r.ops {
		if o.outcome == unknown {
			unknowns++
		}
	}
	learn(r.ops, after)
	w.note(func(s *stats) { s.learned += unknowns })

	var room struct {
		LastSeq int64 `json:"last_seq"`
	}
	if err := who.want(ctx, 200, "GET", base+"/api/v1/conversations/"+r.id, nil, &room); err != nil {
		return err
	}
	if room.LastSeq != int64(len(after)) {
		r.blame(gap, "last_seq is %d, the transcript has %d messages", room.LastSeq, len(after))
	}
	if !r.asks {
		return nil
	}
	tasks := 0
	for _, a := range r.people {
		states, err := a.taskStates(ctx, base, r.id)
		if err != nil {
			return err
		}
		tasks += len(states)
		for id, state := range states {
			if answers[id] != state {
				r.blame(unanswered, "task %s is %q, its message in the transcript says %q", id, state, answers[id])
			}
		}
	}
	if tasks != len(answers) {
		r.blame(unanswered, "%d tasks have %d answers", tasks, len(answers))
	}
	return nil
}

// sampled is the expected number of older agents and conversations that each check reads.
const sampled = 5

func (w *world) checkOthers(ctx context.Context, base string, rng *rand.Rand, everywhere bool) []violation {
	var out []violation
	add := func(kind, format string, args ...any) {
		out = append(out, violation{kind, fmt.Sprintf(format, args...)})
	}
	look := func(i, n int) bool { return everywhere || i >= n-8 || rng.IntN(n) < sampled }
	for i := range w.agents {
		a := &w.agents[i]
		if !look(i, len(w.agents)) {
			continue
		}
		var in struct {
			Name      string `json:"name"`
			Kind      string `json:"kind"`
			HasSecret bool   `json:"has_secret"`
		}
		status, err := w.people[0].call(ctx, "GET", base+"/api/v1/agents/"+a.name, nil, &in)
		switch there := status == 200; {
		case err != nil || status != 200 && status != 404:
			add(misbehaved, "looking at agent %s: %d, %v", a.name, status, err)
		case a.outcome == acked && !there:
			add(lost, "agent %s was registered and is gone", a.name)
		case a.outcome == refused && there:
			add(intruded, "agent %s is there, though it was refused or absent before", a.name)
		case there && (in.Name != a.name || in.Kind != "openai" || !in.HasSecret):
			add(changed, "agent %s is now %+v", a.name, in)
		case there:
			a.outcome = acked
		default:
			a.outcome = refused
		}
	}
	for i, c := range w.conversations {
		if !look(i, len(w.conversations)) {
			continue
		}
		var in struct {
			Title   string `json:"title"`
			Members []struct {
				Handle string `json:"handle"`
			} `json:"members"`
		}
		status, err := c.owner.call(ctx, "GET", base+"/api/v1/conversations/"+c.id, nil, &in)
		switch {
		case err != nil || status != 200 && status != 404:
			add(misbehaved, "looking at conversation %s: %d, %v", c.id, status, err)
		case status == 404:
			add(lost, "conversation %s was begun and is gone", c.id)
		case in.Title != c.title || len(in.Members) != 2:
			add(changed, "conversation %s is now %+v", c.id, in)
		}
	}
	return out
}

// again sends earlier messages once more with the same client_id. A message that was not stored before
// is stored now.
func (w *world) again(base string, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	for range resends {
		r := w.rooms[rng.IntN(len(w.rooms))]
		if len(r.ops) == 0 {
			continue
		}
		o := r.ops[rng.IntN(len(r.ops))]
		if o.attempts == 0 { // a message of bad, which must never be accepted
			continue
		}
		for _, a := range r.people {
			if a.name == o.sender {
				was := o.outcome
				if r.post(ctx, a, base, o, o.text) == 0 {
					r.blame(misbehaved, "no answer when client_id %s was sent again", o.clientID)
				}
				if was == acked {
					w.stats.reacked++
				}
			}
		}
	}
}

// acknowledged returns the number of messages acknowledged so far.
func (w *world) acknowledged() int {
	n := 0
	for _, r := range append(append([]*room(nil), w.rooms...), w.olds...) {
		for _, o := range r.ops {
			if o.outcome == acked {
				n++
			}
		}
	}
	return n
}
