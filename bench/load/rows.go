package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentsite/bench/corpus"
	"agentsite/bench/report"
)

// textSize is how long an ordinary message is.
const textSize = 120

// side is one of what is compared: the same load on a server of its own.
type side struct {
	*server
	load   load
	begin  func() (settle func() error, err error) // before each round
	after  func() error                            // after each, not counted
	per    []float64                               // CPU of one operation, by round
	times  []time.Duration
	others []float64
	size   int
}

func (s *side) round() error {
	var settle func() error
	if s.begin != nil {
		var err error
		if settle, err = s.begin(); err != nil {
			return err
		}
	}
	busy0, all0 := jiffies()
	own0, err := s.CPU()
	if err != nil {
		return err
	}
	self0 := selfCPU()
	o, err := s.under(s.load, settle)
	if err != nil {
		return err
	}
	own1, err := s.CPU()
	if err != nil {
		return err
	}
	busy1, all1 := jiffies()
	ours := (own1 - own0 + selfCPU() - self0).Seconds() * 100
	if all1 > all0 {
		s.others = append(s.others, max(0, busy1-busy0-ours)/(all1-all0)*100)
	}
	s.per = append(s.per, o.perOp())
	s.times = append(s.times, o.times...)
	s.size = o.size
	if s.after != nil {
		return s.after()
	}
	return nil
}

// interleave runs rounds of one side after the other, after one of each that
// is not counted.
func interleave(rounds int, sides ...*side) error {
	for i := range rounds + 1 {
		for _, s := range sides {
			if i == 1 {
				s.per, s.times, s.others = nil, nil, nil
			}
			if err := s.round(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ratios are a's CPU to b's, round by round.
func ratios(a, b *side) []float64 {
	out := make([]float64, len(a.per))
	for i := range a.per {
		out[i] = a.per[i] / b.per[i]
	}
	return out
}

// compare adds the line of a portal beside its floor; a bar of 0 gates nothing.
func (b *bench) compare(what string, portal, floor *side, bar float64) {
	r := ratios(portal, floor)
	l := report.Line{What: what, Floor: micro(report.Median(floor.per)), Portal: micro(report.Median(portal.per)), Ratio: report.Spread(r),
		P50:    report.Join(report.Millis(report.Percentile(floor.times, 0.5)), report.Millis(report.Percentile(portal.times, 0.5))),
		P99:    report.Join(report.Millis(report.Percentile(floor.times, 0.99)), report.Millis(report.Percentile(portal.times, 0.99))),
		Others: fmt.Sprintf("%.0f %%", report.Median(append(portal.others, floor.others...)))}
	if bar > 0 {
		l.Bar, l.Gated, l.Met = fmt.Sprintf("≤ %.1f×", bar), true, report.Median(r) <= bar
	}
	b.Add(l)
}

func get(path string, token string) func(addr string, worker, i int) []byte {
	var once sync.Once
	var req []byte
	return func(addr string, _, _ int) []byte {
		once.Do(func() { req = request(addr, path, token, "") })
		return req
	}
}

// pages compares pages signed out: the bar is to the same page without what a
// portal does for it; the plain page is what PERFORMANCE.md's figure is of.
func (b *bench) pages() error {
	one := func(s *server, path string) *side {
		return &side{server: s, load: load{workers: 64, during: b.round, status: 200, request: get(path, "")}}
	}
	plain, floor, portal := one(b.floor, "/plain"), one(b.floor, "/agents"), one(b.portal, "/agents")
	if err := interleave(b.rounds, plain, floor, portal); err != nil {
		return err
	}
	b.compare(fmt.Sprintf("browse page, 20 cards (%d kB), signed out, c=64", portal.size/1000), portal, floor, 2)
	b.compare(fmt.Sprintf("  the same to the plain page (%.1f kB; 31–40 µs there)", float64(plain.size)/1000), portal, plain, 0)
	return nil
}

// messages compares what a message costs from the request to the reader's
// frame, by workers in as many conversations of two, each with one reader.
func (b *bench) messages(workers, each, rooms int, bar float64) error {
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	one := func(s *server, live, post func(room int) string, token func(worker int) string) *side {
		side := &side{server: s, load: load{workers: workers, each: each, status: 201}}
		round := 0
		side.load.request = func(addr string, w, i int) []byte {
			body, _ := json.Marshal(map[string]string{"client_id": fmt.Sprintf("%s-%d-%d-%d", run, round, w, i), "text": corpus.Text(i, textSize)})
			return request(addr, post(w%rooms), token(w), string(body))
		}
		var readers []*reader
		side.begin = func() (func() error, error) {
			for _, r := range readers {
				r.close()
			}
			readers = readers[:0]
			round++
			for room := range rooms {
				after := ""
				if s == b.portal {
					last, err := b.lastSeq(room)
					if err != nil {
						return nil, err
					}
					after = fmt.Sprintf("?after=%d", last)
				}
				r, err := follow(s.Addr, live(room)+after, token(room+rooms), nil)
				if err != nil {
					return nil, err
				}
				readers = append(readers, r)
			}
			time.Sleep(50 * time.Millisecond)
			return func() error { return await(readers, int64(workers*each)) }, nil
		}
		return side
	}
	room := func(i int) string { return "/rooms/" + strconv.Itoa(i) }
	floor := one(b.floor, func(i int) string { return room(i) + "/live" }, func(i int) string { return room(i) + "/messages" }, func(int) string { return "" })
	chat := func(i int) string { return "/api/v1/conversations/" + b.data.rooms[i] }
	portal := one(b.portal, func(i int) string { return chat(i) + "/live" }, func(i int) string { return chat(i) + "/messages" },
		// Worker w writes in room w%rooms, as either of its people.
		func(w int) string { return b.data.tokens[2*(w%rooms)+w/rooms%2] })
	if err := interleave(b.rounds, floor, portal); err != nil {
		return err
	}
	floor.begin() // closes the last readers
	portal.begin()
	b.compare(fmt.Sprintf("message, durable (FULL), answered and seen by a reader, c=%d", workers), portal, floor, bar)
	return nil
}

func (b *bench) lastSeq(room int) (int64, error) {
	var c struct {
		LastSeq int64 `json:"last_seq"`
	}
	return c.LastSeq, b.portalJSON("/api/v1/conversations/"+b.data.rooms[room], b.data.tokens[2*room], &c)
}

// rate is how many messages a second are sent without waiting for answers.
const rate = 100

// seen measures when another browser is told of a message at that rate, from
// when it should have been sent. Floor and portal take turns; a stall of the
// machine spoils one turn, so the bar is to the median of the turns' p99.
func (b *bench) seen(turn time.Duration) error {
	const room = 12 // that no other row uses
	var list [2]struct {
		cpu   time.Duration
		times []time.Duration
		p99   []float64
	}
	for range b.rounds {
		last, err := b.lastSeq(room)
		if err != nil {
			return err
		}
		chat := "/api/v1/conversations/" + b.data.rooms[room]
		for i, o := range []openLoop{
			{server: b.floor, live: fmt.Sprintf("/rooms/%d/live", room), post: fmt.Sprintf("/rooms/%d/messages", room)},
			{server: b.portal, live: fmt.Sprintf("%s/live?html=1&after=%d", chat, last), post: chat + "/messages",
				sender: b.data.tokens[2*room], reader: b.data.tokens[2*room+1]},
		} {
			cpu0, err := o.CPU()
			if err != nil {
				return err
			}
			times, err := o.run(int(turn.Seconds() * rate))
			if err != nil {
				return err
			}
			cpu1, err := o.CPU()
			if err != nil {
				return err
			}
			x := &list[i]
			x.cpu += cpu1 - cpu0
			x.times = append(x.times, times...)
			x.p99 = append(x.p99, float64(report.Percentile(times, 0.99)))
		}
	}
	floor, portal := list[0], list[1]
	per := func(cpu time.Duration, n int) float64 { return us(cpu) / float64(n) }
	p99 := time.Duration(report.Median(portal.p99))
	b.Add(report.Line{What: fmt.Sprintf("message seen by another browser (html), %d/s open loop, %d turns of %s", rate, b.rounds, turn),
		Floor: micro(per(floor.cpu, len(floor.times))), Portal: micro(per(portal.cpu, len(portal.times))),
		P50: report.Join(report.Millis(report.Percentile(floor.times, 0.5)), report.Millis(report.Percentile(portal.times, 0.5))),
		P99: report.Join(report.Millis(time.Duration(report.Median(floor.p99))), report.Millis(p99)),
		Bar: "p99 ≤ 50 ms", Gated: true, Met: p99 <= 50*time.Millisecond})
	b.Add(report.Line{What: "  the worst turn's p99", P99: report.Join(report.Millis(time.Duration(slices.Max(floor.p99))), report.Millis(time.Duration(slices.Max(portal.p99))))})
	return nil
}

// openLoop is a conversation into which one side writes at a rate while
// another reads.
type openLoop struct {
	*server
	live, post     string // addresses
	sender, reader string // tokens
}

// run sends n messages and returns how long each took to be seen.
func (o openLoop) run(n int) ([]time.Duration, error) {
	sent, got := make([]time.Time, n), make([]time.Duration, n)
	r, err := follow(o.Addr, o.live, o.reader, func(frame []byte) {
		now := time.Now()
		_, rest, _ := bytes.Cut(frame, []byte(`"text":"`))
		num, _, _ := bytes.Cut(rest, []byte(":"))
		if i, err := strconv.Atoi(string(num)); err == nil && i < n {
			got[i] = now.Sub(sent[i])
		}
	})
	if err != nil {
		return nil, err
	}
	defer r.close()
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	const senders = 8
	fails := make([]error, senders)
	var wg sync.WaitGroup
	began := time.Now().Add(50 * time.Millisecond)
	for i := range sent {
		sent[i] = began.Add(time.Duration(i) * time.Second / rate)
	}
	for w := range senders {
		wg.Go(func() {
			c, err := dial(o.Addr)
			if err != nil {
				fails[w] = err
				return
			}
			defer c.Close()
			for i := w; i < n; i += senders {
				time.Sleep(time.Until(sent[i]))
				body, _ := json.Marshal(map[string]string{"client_id": fmt.Sprintf("%s-%d", run, i), "text": corpus.Text(i, textSize)})
				status, _, err := c.do(request(o.Addr, o.post, o.sender, string(body)))
				if err != nil || status != 201 {
					fails[w] = fmt.Errorf("%s, message %d: status %d, %v", o.Name, i, status, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(fails...); err != nil {
		return nil, err
	}
	return got, await([]*reader{r}, int64(n))
}

// grown is how many messages the conversations of growth begin with.
var grown = []int{1_000, 10_000, 100_000, 1_000_000}

// growth measures what a message and a page of 50 cost in conversations of
// several lengths on one portal.
func (b *bench) growth(s *server, p *portal, sizes []int) error {
	// 6 rounds of 140 messages a person stay below what one may say at once.
	const workers = 8
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	jobs := []struct {
		name string
		of   func(room, size int) load
	}{
		{"append", func(room, size int) load {
			return load{workers: workers, each: 35, status: 201, request: func(addr string, w, i int) []byte {
				body, _ := json.Marshal(map[string]string{"client_id": fmt.Sprintf("%s-%d-%d-%d", run, rand.Uint64(), w, i), "text": corpus.Text(i, textSize)})
				return request(addr, "/api/v1/conversations/"+p.rooms[room]+"/messages", p.tokens[2*room+w%2], string(body))
			}}
		}},
		{"newest 50", func(room, size int) load {
			return load{workers: workers, during: b.round / 3, status: 200, request: get("/api/v1/conversations/"+p.rooms[room]+"/messages?order=newest&limit=50", p.tokens[2*room])}
		}},
		{"any 50", func(room, size int) load {
			return load{workers: workers, during: b.round / 3, status: 200, request: func(addr string, w, i int) []byte {
				return request(addr, fmt.Sprintf("/api/v1/conversations/%s/messages?before=%d&limit=50", p.rooms[room], 60+rand.IntN(size-50)), p.tokens[2*room], "")
			}}
		}},
	}
	for _, j := range jobs {
		var sides []*side
		for i, n := range sizes {
			sides = append(sides, &side{server: s, load: j.of(i, n)})
		}
		if err := interleave(b.rounds, sides...); err != nil {
			return err
		}
		var costs, p50, p99 []string
		for _, s := range sides {
			costs = append(costs, fmt.Sprintf("%.0f", report.Median(s.per)))
			p50 = append(p50, fmt.Sprintf("%.1f", us(report.Percentile(s.times, 0.5))/1e3))
			p99 = append(p99, fmt.Sprintf("%.1f", us(report.Percentile(s.times, 0.99))/1e3))
		}
		first, last := sides[0], sides[len(sides)-1]
		r := ratios(last, first)
		// 15 % is what the figure allows; the rest is the machine's noise.
		b.Add(report.Line{What: fmt.Sprintf("%s, conversation of %s messages", j.name, report.Join(thousands(sizes)...)), Portal: report.Join(costs...) + " µs", Ratio: report.Spread(r),
			P50: report.Join(p50...) + " ms", P99: report.Join(p99...) + " ms", Others: fmt.Sprintf("%.0f %%", report.Median(last.others)), Bar: "last/first ≤ 1.3", Gated: true, Met: report.Median(r) <= 1.3})
	}
	return nil
}

func thousands(list []int) []string {
	var out []string
	for _, n := range list {
		if n >= 1_000_000 {
			out = append(out, fmt.Sprintf("%dM", n/1_000_000))
		} else {
			out = append(out, fmt.Sprintf("%dk", n/1000))
		}
	}
	return out
}

// pageOfMessages compares a page of 50 with the floor's.
func (b *bench) pageOfMessages() error {
	const room = 0 // it has messages by now, on both sides
	floor := &side{server: b.floor, load: load{workers: 16, during: b.round, status: 200, request: get("/rooms/0/messages", "")}}
	portal := &side{server: b.portal, load: load{workers: 16, during: b.round, status: 200,
		request: get("/api/v1/conversations/"+b.data.rooms[room]+"/messages?order=newest&limit=50", b.data.tokens[0])}}
	if err := interleave(b.rounds, floor, portal); err != nil {
		return err
	}
	b.compare("newest 50 messages, JSON, c=16 (127–136 µs there)", portal, floor, 0)
	return nil
}
