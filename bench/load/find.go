package main

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"agentsite/bench/corpus"
	"agentsite/bench/report"
	"agentsite/store"
)

// Where portal and floor are searched.
const (
	portalSearch = "/api/v1/search?q="
	floorSearch  = "/search?q="
)

// searchRate is how many searches a second are asked for without waiting.
const searchRate = 500

// steady is how much slower a search may become while agents are registered,
// and after many were.
const steady = 1.3

// hard is a search of the mix; every eighth is for the word all have.
func hard(i int) string {
	if i%8 == 7 {
		return corpus.Commonest()
	}
	return corpus.Hard(i)
}

// search compares searches with all facets among many agents.
func (b *bench) search(turn time.Duration, more int) error {
	x, err := b.theBig()
	if err != nil {
		return err
	}
	one := func(s *server, path string, text func(i int) string) *side {
		return &side{server: s, load: load{workers: 64, during: b.round, status: http.StatusOK, request: func(addr string, worker, i int) []byte {
			return request(addr, path+text(worker*7919+i), "", "")
		}}}
	}
	for _, q := range []struct {
		what string
		text func(i int) string
	}{
		{"hard word mix", func(i int) string { return url.QueryEscape(corpus.Hard(i)) }},
		{"the commonest word", func(int) string { return corpus.Commonest() }},
	} {
		floor, portal := one(x.floor, floorSearch, q.text), one(x.portal, portalSearch, q.text)
		if err := interleave(b.rounds, portal, floor); err != nil {
			return err
		}
		b.compare(fmt.Sprintf("search, %s, 20 of %s agents with facets, JSON, c=64", q.what, short(x.full.agents)), portal, floor, 3)
	}
	rough := one(x.portal, portalSearch, func(i int) string {
		text, kind := corpus.Rough(i)
		return url.QueryEscape(text) + "&kind=" + kind
	})
	if err := interleave(b.rounds, rough); err != nil {
		return err
	}
	b.Add(report.Line{What: "  half words, misspelt ones, phrases, exclusions, filters, c=64", Portal: micro(report.Median(rough.per)),
		P50: report.Millis(report.Percentile(rough.times, 0.5)), P99: report.Millis(report.Percentile(rough.times, 0.99))})
	if err := b.whileRegistering(x, turn); err != nil {
		return err
	}
	return b.afterRegistering(x, turn, more)
}

func searching(path string) pace {
	return pace{rate: searchRate, status: http.StatusOK, request: func(addr string, i int) []byte {
		return request(addr, path+url.QueryEscape(hard(i)), "", "")
	}}
}

// registering is as many registrations a second, by their owners or, at the
// floor, by nobody.
func (x *big) registering(path string, tokens bool) pace {
	return pace{rate: searchRate, status: http.StatusCreated, request: func(addr string, _ int) []byte {
		_, token, body := x.registration(corpus.Strange)
		if !tokens {
			token = ""
		}
		return request(addr, path, token, body)
	}}
}

// whileRegistering measures searches at a rate: alone, and while as many
// agents register. What the registrations cost by themselves is measured too
// and taken off.
func (b *bench) whileRegistering(x *big, turn time.Duration) error {
	type result struct {
		quiet, busy paced
		cpu         []float64 // busy to quiet, without the registrations
	}
	var list [2]result
	for round := range b.rounds + 1 {
		for i, s := range []struct {
			*server
			search, register pace
		}{{x.floor, searching(floorSearch), x.registering("/agents", false)}, {x.portal, searching(portalSearch), x.registering("/api/v1/agents", true)}} {
			quiet, err := s.turn(turn, s.search)
			if err != nil {
				return err
			}
			alone, err := s.turn(turn, s.register)
			if err != nil {
				return err
			}
			busy, err := s.turn(turn, s.search, s.register)
			if err != nil {
				return err
			}
			if round == 0 {
				continue // is not counted
			}
			r := &list[i]
			busy.cpu -= alone.cpu
			r.quiet.add(quiet)
			r.busy.add(busy)
			r.cpu = append(r.cpu, float64(busy.cpu)/float64(quiet.cpu))
		}
	}
	floor, portal := &list[0], &list[1]
	pair := func(of func(r *result) string) string { return report.Join(of(floor), of(portal)) }
	b.Add(report.Line{What: fmt.Sprintf("search among %s, the mix, %d/s open loop, %d turns of %s", short(x.full.agents), searchRate, b.rounds, turn),
		Floor: micro(report.Median(floor.quiet.cpu)), Portal: micro(report.Median(portal.quiet.cpu)),
		P50: pair(func(r *result) string { return report.Millis(report.Percentile(r.quiet.times, 0.5)) }), P99: pair(func(r *result) string { return report.Millis(r.quiet.worst()) }),
		Bar: "p99 ≤ 25 ms", Gated: true, Met: portal.quiet.worst() <= 25*time.Millisecond})
	b.Add(report.Line{What: fmt.Sprintf("  CPU of a search while %d agents/s register, to quiet", searchRate),
		Floor: fmt.Sprintf("%s (%.2f)", micro(report.Median(floor.busy.cpu)), report.Median(floor.cpu)), Portal: micro(report.Median(portal.busy.cpu)), Ratio: report.Spread(portal.cpu),
		Bar: "≤ 1.3× of quiet", Gated: true, Met: report.Median(portal.cpu) <= steady})
	late := quotients(portal.busy.p99, portal.quiet.p99)
	b.Add(report.Line{What: "  its p99, to quiet", Floor: report.Spread(quotients(floor.busy.p99, floor.quiet.p99)), Ratio: report.Spread(late),
		P50: pair(func(r *result) string { return report.Millis(report.Percentile(r.busy.times, 0.5)) }), P99: pair(func(r *result) string { return report.Millis(r.busy.worst()) }),
		Bar: "≤ 1.3× of quiet", Gated: !b.quick, Met: report.Median(late) <= steady}) // a short turn has too few to judge its slowest
	return nil
}

// afterRegistering compares searches of the portal with those of one that
// began with the same agents and to which nobody registered any.
func (b *bench) afterRegistering(x *big, turn time.Duration, more int) error {
	if err := x.registerMany(more); err != nil {
		return err
	}
	n, err := total(x.portal.Addr)
	if err != nil {
		return err
	}
	untouched, _, err := b.fill(x.untouched, x.full.agents, 0)
	if err != nil {
		return err
	}
	defer untouched.Kill()
	var before, after paced
	for round := range b.rounds + 1 {
		for i, s := range []*server{untouched, x.portal} {
			t, err := s.turn(turn, searching(portalSearch))
			if err != nil {
				return err
			}
			if round > 0 {
				[]*paced{&before, &after}[i].add(t)
			}
		}
	}
	cpu, late := quotients(after.cpu, before.cpu), quotients(after.p99, before.p99)
	what := fmt.Sprintf("search after %s registrations, to a portal without them, %d/s", short(n-x.full.agents), searchRate)
	b.Add(report.Line{What: what, Portal: report.Join(micro(report.Median(before.cpu)), micro(report.Median(after.cpu))), Ratio: report.Spread(cpu),
		Bar: "≤ 1.3×", Gated: true, Met: report.Median(cpu) <= steady})
	b.Add(report.Line{What: "  its p99", Ratio: report.Spread(late), P50: report.Join(report.Millis(report.Percentile(before.times, 0.5)), report.Millis(report.Percentile(after.times, 0.5))),
		P99: report.Join(report.Millis(before.worst()), report.Millis(after.worst())), Bar: "≤ 1.3×", Gated: !b.quick, Met: report.Median(late) <= steady})
	return nil
}

// million measures searches among a million agents.
func (b *bench) million(n int, turn time.Duration) error {
	const few = 10_000
	data, err := seed(filepath.Join(b.work, "million"), 2, few)
	if err != nil {
		return err
	}
	settle := 5 * time.Second
	s, small, err := b.fill(data.dir, few, settle)
	if err != nil {
		return err
	}
	s.Stop()
	if err := data.with(func(db *store.DB) error { return data.list(db, n) }); err != nil {
		return err
	}
	s, full, err := b.fill(data.dir, n, settle)
	if err != nil {
		return err
	}
	defer s.Kill()
	b.filled("index", small, full, false)
	for _, q := range []struct {
		what string
		text func(i int) string
	}{{"hard word mix", corpus.Hard}, {"the commonest word", func(int) string { return corpus.Commonest() }}} {
		one := &side{server: s, load: load{workers: 64, during: b.round, status: http.StatusOK, request: func(addr string, worker, i int) []byte {
			return request(addr, portalSearch+url.QueryEscape(q.text(worker*7919+i)), "", "")
		}}}
		if err := interleave(b.rounds, one); err != nil {
			return err
		}
		b.Add(report.Line{What: fmt.Sprintf("search, %s, 20 of %s agents with facets, c=64", q.what, short(n)), Portal: micro(report.Median(one.per)),
			P50: report.Millis(report.Percentile(one.times, 0.5)), P99: report.Millis(report.Percentile(one.times, 0.99))})
	}
	for _, rate := range []int{100, searchRate} {
		p := searching(portalSearch)
		p.rate = rate
		var all paced
		for round := range b.rounds + 1 {
			t, err := s.turn(turn, p)
			if err != nil {
				return err
			}
			if round > 0 {
				all.add(t)
			}
		}
		b.Add(report.Line{What: fmt.Sprintf("search among %s, the mix, %d/s open loop, %d turns of %s", short(n), rate, b.rounds, turn), Portal: micro(report.Median(all.cpu)),
			P50: report.Millis(report.Percentile(all.times, 0.5)), P99: report.Join(report.Millis(all.worst()), report.Millis(time.Duration(slices.Max(all.p99)))),
			Bar: "p99 ≤ 100 ms", Gated: true, Met: all.worst() <= 100*time.Millisecond})
	}
	return nil
}
